"""Decoders of embeddings whose rank, constancy and errors are known: what C8 and K9 must decide
rightly.

Every value of a factor has an embedding, an N x N matrix: a stripe, or something like one. A
decoder multiplies the sizes of two embeddings pixel by pixel, so that stripes give a bump, or it
adds the embeddings. A corner is held out.
"""

from types import SimpleNamespace

import numpy as np

from compgen_jax.papers.forced_rendering.bump_presets import ABLATIONS
from compgen_jax.runs import results
from compgen_jax.runs.run import Run
from compgen_jax.tasks.bump import stripe_points
from tests.papers.criteria.known_maps import GRID, SEEDS, bumps, jittered, scorer_of
from tests.papers.criteria.matrix import Matrix, rows_of, runs_by

NOISE = 0.05  # of a stripe's energy

# --- embeddings --------------------------------------------------------------------------------

# cut: stripes that end where the corner begins, so that nothing is drawn there.  alternating: the
# sign changes from pixel to pixel
ON_DECODERS = """
answer         K9/entropy K9/variance
stripes        -          R
full-rank      -          R
cut            R          -
cut-full-rank -          -
alternating    -          -
added          -          -
"""


def embeddings(name: str, stripes, low: int):
    """(N, N, N) [x, row, column] of x, by its stripes, which are vertical. From `low` on, values
    are held out."""
    values = np.arange(len(stripes))
    if name.startswith("cut"):
        held_out = values >= low
        stripes = np.where(held_out[:, None, None] & held_out[:, None], 0.0, stripes)
    if name == "alternating":
        stripes = stripes * (-1.0) ** values[:, None]
    if name.endswith("full-rank"):
        noise = np.random.default_rng(0).normal(size=stripes.shape)
        stripes = stripes + noise * np.sqrt(NOISE * np.square(stripes).mean())
    return stripes


def terms_of(matrices_VxNxN):
    """The parameters of embeddings, the same for every seed."""
    left, values, right = np.linalg.svd(matrices_VxNxN)
    terms = {"values": values, "left": np.swapaxes(left, -2, -1), "right": right}
    return {name: np.repeat(array[None], SEEDS, axis=0) for name, array in terms.items()}


def decoders() -> dict[str, Run]:
    """All known decoders by name."""
    config, known = bumps("corner"), {}
    score, _ = scorer_of(config)
    stripes = results.truths_at(config.make(), stripe_points(GRID))[:GRID]
    for name in rows_of(ON_DECODERS)["K9/entropy"]:
        of_x = embeddings(name, stripes, config.support.low)
        of_y = np.swapaxes(of_x, 1, 2)
        pairs = of_x[None], of_y[:, None]
        drawn = np.add(*pairs) if name == "added" else np.abs(np.multiply(*pairs))
        cells = score(jittered(drawn.reshape(-1, GRID, GRID)))
        model = SimpleNamespace(vectors="unit")
        known[name] = Run.known(cells.seeds, cells, config=SimpleNamespace(model=model))
        known[name].params = {"params": {"embed_x": terms_of(of_x), "embed_y": terms_of(of_y)}}
    return known


# --- errors of ablations -----------------------------------------------------------------------

ERRORS = {  # (ID, OOD) in thousandths, with no penalty, entropy, variance, both
    "as-stated": ((1, 50), (2, 40), (3, 9), (2, 3)),
    "entropy-helps-much": ((1, 50), (2, 20), (3, 9), (2, 3)),
    "entropy-harms": ((1, 50), (2, 170), (3, 9), (2, 3)),
    "variance-costs-nothing": ((2, 50), (2, 40), (1, 9), (2, 3)),
    "variance-alone-is-best": ((1, 50), (2, 40), (3, 9), (2, 10)),
    "worse-than-blank": ((1, 500), (2, 450), (3, 400), (2, 300)),
}
ON_ERRORS = """
answer                 C8 C8.paired C8.variance C8.variance_paired C8.both C8.both_paired
as-stated              R  R         R           R                  R       R
entropy-helps-much     R  R         -           -                  R       R
entropy-harms          -  -         -           -                  R       R
variance-costs-nothing -  -         -           -                  R       R
variance-alone-is-best R  R         R           R                  -       -
worse-than-blank       R  R         -           -                  -       -
"""


def ablations() -> dict[str, dict[str, Run]]:
    """Runs by ablation, all true but for a constant error, which differs a little by seed."""
    score, empty = scorer_of(bumps("corner"))
    known = {}
    for name, errors in ERRORS.items():
        known[name] = {}
        for ablation, (seen, unseen) in zip(ABLATIONS, errors, strict=True):
            size = np.where(empty.held_out, unseen, seen) * np.array([[0.9], [1.0], [1.1]])
            cells = score(empty.truths + 1e-3 * size[..., None, None])
            known[name][ablation] = Run.known(cells.seeds, cells)
    return known


BESIDE = {  # in the place of one ablation; the others are as the sentence says
    "K9/entropy": runs_by(none="cut", entropy="", variance="stripes", both="stripes"),
    "K9/variance": runs_by(none="cut", entropy="cut", variance="", both="stripes"),
}
OF_ERRORS = rows_of(ON_ERRORS)
MATRICES = {
    "low rank": Matrix(decoders, rows_of(ON_DECODERS), BESIDE),
    "errors of low rank": Matrix(
        ablations, OF_ERRORS, dict.fromkeys(OF_ERRORS, lambda name, known: known[name])
    ),
}
