"""Decoders of embeddings whose rank, constancy and errors are known: what C8 and K9 must decide
rightly.

Every value of a factor has an embedding, an N x N matrix: a stripe, or something like one. A
decoder multiplies the sizes of two embeddings pixel by pixel, so that stripes give a bump, or it
adds the embeddings. A corner is held out.
"""

from functools import partial
from types import SimpleNamespace

import numpy as np

from compgen_jax.papers.forced_rendering.bump_presets import ABLATIONS
from compgen_jax.runs import results
from compgen_jax.runs.run import Run
from compgen_jax.tasks.bump import stripe_points
from tests.papers.criteria.known_maps import SEEDS, bumps, jittered, scorer_of
from tests.papers.criteria.matrix import Matrix, letters

NOISE = 0.05  # of a stripe's energy

# --- embeddings --------------------------------------------------------------------------------

DECODERS = {
    "stripes": "multiplies stripes",
    "full rank": "multiplies stripes with noise of full rank",
    "cut": "multiplies stripes that end where the corner begins, so that it draws nothing there",
    "cut, full rank": "multiplies such stripes with noise of full rank",
    "alternating": "multiplies the sizes of stripes whose sign changes from pixel to pixel",
    "added": "adds stripes",
}


def _embeddings(name: str, stripes, low: int):
    """(N, N, N) [x, row, column] of x, by its stripes, which are vertical. From `low` on, values
    are held out."""
    values = np.arange(len(stripes))
    if name.startswith("cut"):
        held_out = values >= low
        stripes = np.where(held_out[:, None, None] & held_out[:, None], 0.0, stripes)
    if name == "alternating":
        stripes = stripes * (-1.0) ** values[:, None]
    if name.endswith("full rank"):
        noise = np.random.default_rng(0).normal(size=stripes.shape)
        stripes = stripes + noise * np.sqrt(NOISE * np.square(stripes).mean())
    return stripes


def decoders(grid: int) -> dict[str, Run]:
    """All known decoders by name."""
    config, known = bumps(grid, "corner"), {}
    score, _ = scorer_of(config)
    stripes = results.truths_at(config.make(), stripe_points(grid))[:grid]
    for name in DECODERS:
        of_x = _embeddings(name, stripes, config.support.low)
        of_y = np.swapaxes(of_x, 1, 2)
        pairs = of_x[None], of_y[:, None]
        drawn = np.add(*pairs) if name == "added" else np.abs(np.multiply(*pairs))
        cells = score(jittered(drawn.reshape(-1, grid, grid)))
        model = SimpleNamespace(vectors="unit")
        known[name] = Run.known(cells.seeds, cells, config=SimpleNamespace(model=model))
        known[name].params = {"params": {"embed_x": _terms(of_x), "embed_y": _terms(of_y)}}
    return known


def _terms(matrices_VxNxN):
    """The parameters of embeddings, the same for every seed."""
    left, values, right = np.linalg.svd(matrices_VxNxN)
    terms = {"values": values, "left": np.swapaxes(left, -2, -1), "right": right}
    return {name: np.repeat(array[None], SEEDS, axis=0) for name, array in terms.items()}


def _as(ablation: str, name: str, known: dict):
    """In the place of one ablation; the others are as the sentence says."""
    names = {"none": "cut", "entropy": "cut", "variance": "stripes", "both": "stripes"}
    return {each: known[of] for each, of in (names | {ablation: name}).items()}


# --- errors of ablations -----------------------------------------------------------------------

ERRORS = {  # (ID, OOD) in thousandths, with no penalty, entropy, variance, both
    "as stated": ((1, 50), (2, 40), (3, 9), (2, 3)),
    "entropy helps much": ((1, 50), (2, 20), (3, 9), (2, 3)),
    "entropy harms": ((1, 50), (2, 170), (3, 9), (2, 3)),
    "variance costs nothing": ((2, 50), (2, 40), (1, 9), (2, 3)),
    "variance alone is best": ((1, 50), (2, 40), (3, 9), (2, 10)),
    "worse than blank": ((1, 500), (2, 450), (3, 400), (2, 300)),
}
ORDERED = dict.fromkeys(ERRORS, "R") | {"entropy harms": "-", "variance costs nothing": "-"}
BY_VARIANCE = letters(ERRORS, R=("as stated", "variance alone is best"))
BEST = dict.fromkeys(ERRORS, "R") | {"variance alone is best": "-", "worse than blank": "-"}
OF_ERRORS = {"C8": ORDERED, "C8.paired": ORDERED}
OF_ERRORS |= {"C8.variance": BY_VARIANCE, "C8.variance_paired": BY_VARIANCE}
OF_ERRORS |= {"C8.both": BEST, "C8.both_paired": BEST}


def ablations(grid: int) -> dict[str, dict[str, Run]]:
    """Runs by ablation, all true but for a constant error, which differs a little by seed."""
    score, empty = scorer_of(bumps(grid, "corner"))

    def of_errors(seen, unseen):
        size = np.where(empty.held_out, unseen, seen) * np.array([[0.9], [1.0], [1.1]])
        cells = score(empty.truths + 1e-3 * size[..., None, None])
        return Run.known(cells.seeds, cells)

    return {
        name: {one: of_errors(*pair) for one, pair in zip(ABLATIONS, errors, strict=True)}
        for name, errors in ERRORS.items()
    }


OF_EMBEDDINGS = {
    "K9, with entropy alone": letters(DECODERS, R=("cut",)),
    "K9, with variance alone": letters(DECODERS, R=("stripes", "full rank")),
}
BESIDE = {f"K9, with {one} alone": partial(_as, one) for one in ("entropy", "variance")}
MATRICES = tuple(
    Matrix(
        f"N = {grid}, corner, low rank",
        DECODERS | {name: f"errors (ID, OOD) {pairs}" for name, pairs in ERRORS.items()},
        partial(lambda grid: decoders(grid) | ablations(grid), grid),
        OF_EMBEDDINGS | OF_ERRORS,
        BESIDE | dict.fromkeys(OF_ERRORS, lambda name, known: known[name]),
    )
    for grid in (16, 28)
)
