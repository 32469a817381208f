"""K1 to K5: is it composition, or the lighting of pixels? Controls of our own.

Under a block hold-out some pixels never carry signal in training, and a decoder whose pixels
share no weights cannot learn to light them, whatever its code (121 of 784 for the donut 6 to 22).
Stripes light them. So the failure without stripes (C1), and the success with them, may be about
pixels and not about factors. Each control takes one of these explanations away.
"""

from collections.abc import Callable

import jax
import numpy as np

from compgen_jax.metrics import evaluation
from compgen_jax.metrics.evaluation import CellResults, mean_score
from compgen_jax.old_claims import TRAINED, Condition, entry, exact_id
from compgen_jax.tasks import baselines

LIT = 0.1  # of the largest signal: what counts as a pixel lit in training
FIGURE = "controls"


def wide_bumps_fail(results: CellResults) -> dict:
    """K1: bumps so wide that training lights every pixel are not composed either."""
    lit, ood = _lit(results), results.held_out
    return entry(
        "K1",
        "bump",
        results.seeds,
        exact_id(results),
        figure=FIGURE,
        statement="with bumps so wide that training lights every pixel, held-out combinations "
        "still fail",
        as_stated={
            "exact accuracy OOD": Condition(
                mean_score(results, "exact_accuracy", ood), "below", 0.5, ood.sum()
            )
        },
        details={
            "share of pixels lit in training": np.full(len(results.seeds), lit.mean()),
            "share lit to half of the peak": np.full(len(results.seeds), _lit(results, 0.5).mean()),
            "accuracy OOD within 1 pixel": mean_score(
                results, "position_accuracy", results.held_out
            ),
            "MSE OOD / blank image's": evaluation.relative_error(results, results.held_out),
        },
    )


def lit_pixels_fail(results: CellResults, scores: Callable) -> dict:
    """K2: the failure is there on the pixels that training lit alone.

    Asked of held-out cells whose own pixel training lit; the other pixels are blanked in what is
    drawn and in what is asked. `scores` are the task's, to score what is left.
    """
    masked, reachable = on_lit_pixels(results, scores)
    return entry(
        "K2",
        "bump",
        results.seeds,
        exact_id(results),
        figure=FIGURE,
        statement="scored on the pixels that training lit alone, held-out combinations still fail",
        as_stated={
            "exact accuracy OOD, lit pixels": Condition(
                mean_score(masked, "exact_accuracy", reachable), "below", 0.5, reachable.sum()
            ),
            "MSE OOD / blank image's, lit pixels": Condition(
                evaluation.relative_error(masked, masked.held_out), "above", 0.5, ratio=True
            ),
        },
        details={
            "share of pixels lit in training": np.full(len(results.seeds), _lit(results).mean()),
            "share of held-out cells whose pixel is lit": np.full(
                len(results.seeds), reachable.sum() / results.held_out.sum()
            ),
        },
    )


def on_lit_pixels(results: CellResults, scores: Callable):
    """The results with the pixels blanked that no seen image lit, scored anew, and (B,) bool, the
    held-out cells whose own pixel was lit. `scores`: signal, truth, point -> scalars by name."""
    lit = _lit(results)
    x, y = results.factors.round().astype(int).T
    signals, targets = results.predictions * lit, results.truths * lit
    score = jax.jit(jax.vmap(jax.vmap(scores), (0, None, None)))
    found = jax.tree.map(np.asarray, score(signals, targets, results.factors))
    masked = results._replace(predictions=signals, truths=targets, scores=found)
    return masked, results.held_out & lit[y, x]


def random_cells_are_composed(results: CellResults) -> dict:
    """K3: the same share of cells, held out at random, is composed. Unlike a block, nearly each
    of them has a seen neighbour, and every pixel is lit."""
    return _composes(
        "K3",
        "bump",
        results,
        "as many combinations, held out at random instead of as a block, are composed",
    )


def shared_pixels_compose(results: CellResults) -> dict:
    """K4: a decoder that all pixels share composes without a remedy.

    It is the authors' own, on its own terms, but for the hole: one-hot codes, upright images,
    every seen cell once per epoch. So it says what one such decoder does, and not that sharing
    alone makes the difference.
    """
    return _composes(
        "K4",
        "onehot",
        results,
        "a decoder that all pixels share composes held-out combinations without a remedy",
    )


def stripes_beat_trivial_predictors(results: CellResults) -> dict:
    """K5: with stripes and a few bumps, the same hole is composed, better than by any predictor
    that knows the seen bumps alone (`analysis.predictors`). From the stripes themselves it could
    be drawn without error, as their product."""
    trivial = trivial_errors(results)
    best = min(trivial, key=trivial.get)
    return _composes(
        "K5",
        "bump",
        results,
        "trained on stripes and a few bumps, the same hole is composed, better than by any "
        "predictor that knows the seen bumps alone",
        {
            f"MSE OOD / the best trivial predictor's ({best})": Condition(
                evaluation.relative_error(results, results.held_out) / trivial[best],
                "below",
                1.0,
                ratio=True,
            )
        },
    )


def trivial_errors(results: CellResults) -> dict[str, float]:
    """MSE OOD of every trivial predictor over a blank image's, by name."""
    ood = results.held_out
    asked = baselines.asked_on_grid(results.truths, ood, results.sizes)
    truths = results.truths[ood]
    return {
        name: float(np.square(predict(asked)[ood] - truths).mean() / np.square(truths).mean())
        for name, predict in baselines.GRID_PREDICTORS.items()
    }


def conclude(rows: list[dict]) -> str:
    """What the controls say together, in words and numbers; rows of K1 to K5 as far as there are
    any. Composed is what is drawn at the right pixel in more than 90%, failing in less than half,
    on the whole interval; between them it is said to be partly so."""
    outcome = {row["claim"]: _outcome(row) for row in rows}
    said = [SENTENCES[row["claim"]][outcome[row["claim"]]].format(**_shares(row)) for row in rows]
    if outcome.get("K1") == "fails" and outcome.get("K5") == "composed":
        said.append("So stripes give more than pixels lit as wide bumps light them.")
    return " ".join(said)


SENTENCES = {
    "K1": {
        "fails": "Lighting every pixel is not enough: with bumps wide enough to do so, {exact} of "
        "held-out combinations are drawn at the right pixel ({within} within one pixel of it).",
        "partly": "Lighting every pixel is partly enough: with bumps wide enough to do so, {exact} "
        "of held-out combinations are drawn at the right pixel ({within} within one pixel of it).",
        "composed": "Lighting every pixel is enough: with bumps wide enough to do so, {exact} of "
        "held-out combinations are drawn at the right pixel.",
        "untrained": "Decoders of wide bumps, which light every pixel, did not learn them.",
    },
    "K2": {
        "fails": "On the pixels that training lit, ordinary bumps fail as well ({exact} at the "
        "right one).",
        "partly": "On the pixels that training lit, ordinary bumps are partly right ({exact} at "
        "the right one).",
        "composed": "On the pixels that training lit, ordinary bumps do not fail ({exact} at the "
        "right one).",
        "untrained": "Decoders of ordinary bumps did not learn them.",
    },
    "K3": {
        "fails": "Scattered cells fail like a block ({exact} exact).",
        "partly": "Scattered cells are partly composed ({exact} exact).",
        "composed": "Scattered cells, which have seen neighbours and lit pixels, are composed "
        "({exact} exact).",
        "untrained": "Decoders with scattered cells held out did not learn the others.",
    },
    "K4": {
        "fails": "A decoder that all pixels share fails without a remedy ({exact} exact).",
        "partly": "A decoder that all pixels share composes partly without a remedy, seed by seed "
        "({exact} exact).",
        "composed": "A decoder that all pixels share composes without a remedy ({exact} exact).",
        "untrained": "A decoder that all pixels share did not learn what it was shown.",
    },
    "K5": {
        "fails": "Stripes with a few bumps do not compose the block ({exact} exact).",
        "partly": "Stripes with a few bumps compose the block partly ({exact} exact).",
        "composed": "Stripes with a few bumps do compose the block ({exact} exact).",
        "untrained": "Decoders of stripes and a few bumps did not learn the latter.",
    },
}


def _outcome(row: dict) -> str:
    """By the row's first condition, the exact accuracy OOD of the control."""
    low, high = next(iter(row["stricter"]["conditions"].values()))["ci95"]
    if row["details"]["exact accuracy ID"]["value"] < TRAINED:
        return "untrained"
    return "composed" if low > 0.9 else "fails" if high < 0.5 else "partly"


def _shares(row: dict) -> dict:
    within = row["details"].get("accuracy OOD within 1 pixel", {"value": float("nan")})
    exact = next(iter(row["stricter"]["conditions"].values()))
    return {"exact": f"{exact['value']:.0%}", "within": f"{within['value']:.0%}"}


def _composes(claim, code, results, statement, conditions=None) -> dict:
    ood = results.held_out
    return entry(
        claim,
        code,
        results.seeds,
        exact_id(results),
        figure=FIGURE,
        statement=statement,
        as_stated={
            "exact accuracy OOD": Condition(
                mean_score(results, "exact_accuracy", ood), "above", 0.9, ood.sum()
            )
        }
        | (conditions or {}),
        details={
            "accuracy OOD within 1 pixel": mean_score(
                results, "position_accuracy", results.held_out
            ),
            "MSE OOD / blank image's": evaluation.relative_error(results, results.held_out),
        },
    )


def _lit(results, level: float = LIT):
    return baselines.lit_pixels(results.truths[~results.held_out], level)
