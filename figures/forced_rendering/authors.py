"""The authors' own numbers, of networks that they published or printed, beside those of ours."""

from typing import NamedTuple

from compgen_jax.analysis import text

SCORES = {
    "mse": "MSE",
    "exact_accuracy": "exact accuracy",
    "position_accuracy": "accuracy within 1 pixel",
    "train_loss": "training loss",
}


class Authors(NamedTuple):
    """numbers: by score, named as in a summary.  source: where they are from, and what exactly was
    measured.  blank: the error of a blank image in the authors' images by region, where known."""

    numbers: dict
    source: str
    blank: dict = {}


_LOWRANK = (
    "`regularised_network`, the weights they published, measured by us at every cell "
    "(624 seen, 400 held out)"
)
_PIXELWISE_BLANK = {"id": 3.65e-3, "ood": 3.72e-3}

# by our network of the same settings; theirs are one network each
AUTHORS = {
    "lowrank_none": Authors(
        {"id.mse": 1.07e-6, "ood.mse": 2.76e-2, "ood.exact_accuracy": 0.015,
         "ood.position_accuracy": 0.038},
        _LOWRANK,
    ),
    "lowrank_both": Authors(
        {"id.mse": 4.36e-5, "ood.mse": 1.454e-4, "id.exact_accuracy": 0.96,
         "ood.exact_accuracy": 0.903, "ood.position_accuracy": 1.0},
        _LOWRANK,
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


def relative_errors(name: str) -> dict:
    """{region: MSE over a blank image's} of the authors' network, {} where that is not known."""
    found = AUTHORS.get(name, Authors({}, ""))
    return {region: found.numbers[f"{region}.mse"] / blank for region, blank in found.blank.items()}


def table(summaries: dict) -> list[str]:
    """Lines of RESULTS.md on every network of `summaries` (by name) of which the authors give
    numbers; none without any."""
    rows = [
        row
        for name, authors in AUTHORS.items()
        if name in summaries
        for row in _rows(name, authors, summaries[name]["mean"])
    ]
    if not rows:
        return []
    return [
        "",
        "### Beside the authors' numbers",
        "",
        "Theirs are of one network each, so that no interval is known.",
        "",
        "| network | score | here | authors | what theirs is |",
        "|---|---|---|---|---|",
        *rows,
    ]


def _rows(name: str, authors: Authors, mean: dict):
    source = authors.source
    for score, value in authors.numbers.items():
        here = text.with_interval(mean[score])
        yield f"| {name} | {_title(score)} | {here} | {text.number(value)} | {source} |"
        name = source = ""


def _title(score: str) -> str:
    """'ood.mse' -> 'MSE OOD'; the training loss has no region."""
    region, _, name = score.rpartition(".")
    return f"{SCORES[name]} {region.upper()}".strip()
