"""What RESULTS.md says of sprites: the scores of all runs, and Montero's decoders beside ours."""

from compgen_jax.metrics import text
from compgen_jax.studies.real_factors.real_factors_presets import MONTERO

from ..tables import errors_of_images

NLL = "excess_nll"


def table(runs: dict) -> list[str]:
    """Lines of RESULTS.md on finished runs by name. They need their configs and summaries."""
    decoders = {
        run.config.name: run.summary
        for run in runs.values()
        if "id.blank_mse" in run.summary["mean"]
    }
    rows = [
        f"| {run.config.name} | {factor} | {' | '.join(shown)} |"
        for run in runs.values()
        if run.config.name not in decoders
        for factor, shown in accuracies(run).items()
    ]
    head = ["", "| encoder | factor | accuracy ID | accuracy OOD |", "|---" * 4 + "|"]
    return errors_of_images(decoders) + (head + rows if rows else []) + montero(runs)


def accuracies(run) -> dict[str, list[str]]:
    """{factor, or 'all': accuracy ID and OOD in words} of an encoder."""
    mean = run.summary["mean"]
    names = [factor.name for factor in run.config.task.scene().factors]
    scores = {name: f"{name}_accuracy" for name in names} | {"all": "exact_accuracy"}
    return {
        name: [text.with_interval(mean[f"{region}.{score}"]) for region in ("id", "ood")]
        for name, score in scores.items()
    }


def of_montero(runs: dict) -> dict[str, tuple]:
    """{split: (run, published NLL in training and test, or None)} of those that have a likelihood,
    in the order of their paper."""
    return {
        split: (runs[name], published)
        for run_name, (split, published) in MONTERO.items()
        if (name := f"sprites_{run_name}") in runs and f"ood.{NLL}" in runs[name].summary["mean"]
    }


def montero(runs: dict) -> list[str]:
    """A table of NLL per image; [] without runs that have a likelihood."""
    rows = []
    for split, (run, published) in of_montero(runs).items():
        ours = [text.with_interval(run.summary["mean"][f"{at}.{NLL}"]) for at in ("id", "ood")]
        theirs = [text.number(each) for each in published] if published else [text.UNKNOWN] * 2
        rows.append(f"| {split} | {' | '.join([*ours, *theirs])} |")
    head = ["", "NLL in nats per image, above the target's own entropy, which is 0 for dSprites' "
            "black and white pixels. Published: Montero et al. (2021), one run; which of their "
            "architectures is not recorded.", "",
            "| split | ID | OOD | published training | published test |",
            "|---" * 5 + "|"]  # fmt: skip
    return [*head, *rows] if rows else []
