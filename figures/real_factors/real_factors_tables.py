"""What RESULTS.md says of sprites: the scores of all runs, and Montero's decoders beside ours."""

from compgen_jax.metrics import text
from compgen_jax.studies.real_factors.real_factors_presets import MONTERO

from .. import tables

NLL = "excess_nll"


def table(runs: dict) -> list[str]:
    """Lines of RESULTS.md on finished runs by name. They need their configs and summaries."""
    decoders, rows = {}, []
    for run in runs.values():
        if "id.blank_mse" in run.summary["mean"]:
            decoders[run.config.name] = run.summary
            continue
        for factor in (*(factor.name for factor in run.config.task.scene().factors), "all"):
            score = f"{factor.replace('all', 'exact')}_accuracy"
            rows.append((run.config.name, factor, *_of_regions(run.summary["mean"], score)))
    head = ["encoder", "factor", "accuracy ID", "accuracy OOD"]
    encoders = ["", *tables.table(head, rows)] if rows else []
    return tables.errors_of_images(decoders) + encoders + montero(runs)


def _of_regions(mean: dict, score: str) -> list[str]:
    return [text.with_interval(mean[f"{region}.{score}"]) for region in ("id", "ood")]


def montero(runs: dict) -> list[str]:
    """A table of NLL per image; [] without runs that have a likelihood."""
    rows = []
    for name, (split, published) in MONTERO.items():
        run = runs.get(f"sprites_{name}")
        if run and f"ood.{NLL}" in run.summary["mean"]:
            theirs = [text.number(nll) for nll in published] if published else [text.UNKNOWN] * 2
            rows.append((split, *_of_regions(run.summary["mean"], NLL), *theirs))
    intro = (
        "NLL in nats per image, above the target's own entropy, which is 0 for dSprites' black and "
        "white pixels. Published: Montero et al. (2021), one run; which of their architectures is "
        "not recorded."
    )
    head = ["split", "ID", "OOD", "published training", "published test"]
    return ["", intro, "", *tables.table(head, rows)] if rows else []
