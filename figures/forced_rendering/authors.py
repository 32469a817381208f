"""The authors' own numbers, of networks that they published or printed, beside those of ours."""

from typing import NamedTuple

from compgen_jax.config import Config, to_dict
from compgen_jax.metrics import text
from compgen_jax.papers.forced_rendering.runs import runs as paper_runs
from compgen_jax.settings import flat

SCORES = {
    "mse": "MSE",
    "exact_accuracy": "exact accuracy",
    "position_accuracy": "accuracy within 1 pixel",
    "train_loss": "training loss",
}

ALIKE = "task", "model", "training"  # groups of a config that say what is learnt, and how
UNLIKE = "training.seeds", "training.evaluate_every"


class Authors(NamedTuple):
    """numbers: by score, named as in a summary.  source: where they are from, and what exactly was
    measured.  blank: a blank image's error on the authors' images by region, where known."""

    numbers: dict
    source: str
    blank: dict = {}


_LOWRANK = (
    "`regularised_network`, the weights they published, measured by us at every cell "
    "(624 seen, 400 held out)"
)
_LOWRANK_BLANK = {"id": 6.53e-3, "ood": 6.64e-3}
_PIXELWISE_BLANK = {"id": 3.65e-3, "ood": 3.72e-3}

# by our run of the same settings; theirs are one network each
AUTHORS = {
    "lowrank_none": Authors(
        {"id.mse": 1.07e-6, "ood.mse": 2.76e-2, "ood.exact_accuracy": 0.015,
         "ood.position_accuracy": 0.038},
        _LOWRANK,
        _LOWRANK_BLANK,
    ),
    "lowrank_both": Authors(
        {"id.mse": 4.36e-5, "ood.mse": 1.454e-4, "id.exact_accuracy": 0.96,
         "ood.exact_accuracy": 0.903, "ood.position_accuracy": 1.0},
        _LOWRANK,
        _LOWRANK_BLANK,
    ),
    "rotation": Authors(
        {"train_loss": 9.58e-3},
        "`rotation_exps/rotated_mnist.ipynb`, epoch 200, of a digit of MNIST (ours is drawn from a "
        "font unless told otherwise) and of 90% of the seen angles; over the others .00969",
    ),
    "pixelwise": Authors(
        {"id.mse": 2.3e-7, "ood.mse": 3.90e-5, "ood.exact_accuracy": 0.96,
         "ood.position_accuracy": 1.0},
        "`spatial_aware_mlp`, the weights they published, measured by us at 60 seen cells and all "
        "196 held-out ones; their pixels are 28/27 apart",
        _PIXELWISE_BLANK,
    ),
    "pixelwise_depth4": Authors(
        {"id.mse": 1.9e-8, "ood.mse": 2.7e-5},
        "the same, about, at 98 of the held-out cells",
        _PIXELWISE_BLANK,
    ),
    "ramp_cnn_authors": Authors(
        {"id.mse": 6.69e-4, "ood.mse": 4.872e-3},
        "the ramp's `cnn/demo.ipynb`, over 50 x 50 real positions (ours: integers, as trained); "
        "the log that is kept ends at epoch 23 of 100",
    ),
    "bump_cnn_authors_128": Authors(
        {"id.mse": 5.9e-5, "ood.mse": 3.112e-3},
        "the bump's `cnn/demo.ipynb`, over 50 x 50 real positions (ours: integers, as trained), "
        "of a network of 256 channels; its accuracy there, 0, takes rows for columns",
    ),
}  # fmt: skip


def _counterpart(name: str) -> str:
    """The name in `AUTHORS`, if there is one, of a run or of the first epochs of one."""
    return name.removesuffix("_begun")


def relative_errors(name: str) -> dict:
    """{region: MSE over a blank image's} of the authors' network, {} where that is not known."""
    theirs = AUTHORS.get(_counterpart(name), Authors({}, ""))
    return {region: theirs.numbers[f"{region}.mse"] / blank
            for region, blank in theirs.blank.items()}  # fmt: skip


def table(runs: dict) -> list[str]:
    """Lines of RESULTS.md on the runs for which the authors give numbers, on their settings or on
    others, which are named; none without any. It needs configs and summaries."""
    theirs = paper_runs("paper")
    rows = [
        row
        for counterpart, authors in AUTHORS.items()
        for name, run in runs.items()
        if _counterpart(name) == counterpart
        for row in _rows(run, authors, _differences(run.config, theirs[counterpart]))
    ]
    if not rows:
        return []
    return [
        "",
        "### Beside the authors' numbers",
        "",
        "Theirs are of one network each, so that no interval is known. Where ours has other "
        "settings, as named with theirs in brackets, errors are over that of a blank image.",
        "",
        "| network | score | here | authors | our settings | what theirs is |",
        "|---|---|---|---|---|---|",
        *rows,
    ]


def _rows(run, authors: Authors, differences: str):
    mean = run.summary["mean"]
    shown = run.config.name, differences or "theirs", authors.source
    for score, value in authors.numbers.items():
        region, _, name = score.rpartition(".")
        title = f"{SCORES[name]} {region.upper()}".strip()  # the training loss has no region
        here = text.with_interval(mean[score])
        if name == "mse" and differences:
            if region not in authors.blank:
                continue
            title = f"MSE / blank {region.upper()}"
            here = text.with_interval(_over(mean[score], mean[f"{region}.blank_mse"]["value"]))
            value /= authors.blank[region]
        network, settings, source = shown
        yield f"| {network} | {title} | {here} | {text.number(value)} | {settings} | {source} |"
        shown = "", "", ""


def _over(measured: dict, by: float) -> dict:
    ends = [end if end is None else end / by for end in measured["ci95"]]  # of one seed unknown
    return {"value": measured["value"] / by, "ci95": ends}


def _differences(ours: Config, theirs: Config) -> str:
    """'`task.grid` 16 (28), ...': the settings that are not theirs, theirs in brackets."""
    values, others = _settings(ours), _settings(theirs)
    return ", ".join(
        f"`{path}` {value} ({others[path]})"
        for path, value in values.items()
        if path not in UNLIKE and value != others[path]
    )


def _settings(config: Config) -> dict:
    tree = to_dict(config)
    return {path: value for group in ALIKE for path, value in flat(tree[group], group).items()}
