"""C8 to C10, C12 and C13: the two remedies, low rank and stripes (Figures 3, 4, 7 and 15)."""

import numpy as np

from compgen_jax.analysis import evaluation
from compgen_jax.analysis.evaluation import CellResults, mean_score
from compgen_jax.claims.forced_rendering import signals
from compgen_jax.claims.forced_rendering.mechanism import hidden
from compgen_jax.claims.verdicts import Condition, entry, exact_id

# which of the penalties (entropy, variance) each keeps
ABLATIONS = {"none": (0, 0), "entropy": (1, 0), "variance": (0, 1), "both": (1, 1)}
EMBEDDING_NUMBERS = {
    "top_share": "energy in the largest singular value",
    "constant_share": "energy constant along the other axis",
}
FACTOR_OF_TWO = float(np.log10(2))  # what separates helping little from helping much


def penalties_on_embeddings(ablations: dict[str, CellResults], embeddings: dict) -> list[dict]:
    """C8: what the two penalties do to the low-rank decoder (Figure 3e), three statements.

    `ablations` has the results of `ABLATIONS`, whose seeds are paired: differences of log10 MSE
    are taken seed by seed. Learning is asked of the network without penalties only, as what the
    others lose is part of the claim. `embeddings` has, by ablation, the seeds' `top_share` and
    `constant_share`, which tell low rank from constancy along the other factor's axis.
    """
    ood = {name: _log_mse(results, True) for name, results in ablations.items()}
    seen = {name: _log_mse(results, False) for name, results in ablations.items()}
    none, both = ablations["none"], ablations["both"]
    settings = {
        "code": "onehot",
        "seeds": none.seeds,
        "trained_T": exact_id(none),
        "figure": "Fig 3e",
    }
    blank = np.log10(_blank_mse(both))
    others = lambda errors, name: np.stack([errors[n] for n in ABLATIONS if n != name])
    return [
        entry(
            "C8",
            **settings,
            statement="without penalties, the error is the lowest ID and the highest OOD",
            conditions={
                "log10 MSE OOD, none minus the highest of the others": Condition(
                    ood["none"] - others(ood, "none").max(axis=0), "above", 0.0
                ),
                "log10 MSE ID, the lowest of the others minus none": Condition(
                    others(seen, "none").min(axis=0) - seen["none"], "above", 0.0
                ),
            },
            details={
                f"log10 MSE {region}, {name}": errors[name]
                for region, errors in (("ID", seen), ("OOD", ood))
                for name in ABLATIONS
            },
        ),
        entry(
            "C8",
            **settings,
            statement="entropy alone helps little OOD, variance alone much, at a cost ID",
            conditions={
                "log10 MSE OOD, none minus variance": Condition(
                    ood["none"] - ood["variance"], "above", FACTOR_OF_TWO
                ),
                "log10 MSE OOD, none minus entropy": Condition(
                    ood["none"] - ood["entropy"], "below", FACTOR_OF_TWO
                ),
                "log10 MSE ID, variance minus none": Condition(
                    seen["variance"] - seen["none"], "above", 0.0
                ),
            },
            details={},
        ),
        entry(
            "C8",
            **settings,
            statement="both penalties together are best OOD",
            conditions={
                "log10 MSE OOD, the lowest of the others minus both": Condition(
                    others(ood, "both").min(axis=0) - ood["both"], "above", 0.0
                ),
                "log10 MSE OOD of both, over a blank image's": Condition(
                    ood["both"] - blank, "below", 0.0
                ),
            },
            details={
                "exact accuracy OOD, both": mean_score(both, "exact_accuracy", both.held_out),
                "accuracy OOD within 1 pixel, both": mean_score(
                    both, "position_accuracy", both.held_out
                ),
                "exact accuracy OOD, none": mean_score(none, "exact_accuracy", none.held_out),
            }
            | {
                f"{title}, {name}": embeddings[name][key]
                for key, title in EMBEDDING_NUMBERS.items()
                for name in ABLATIONS
            },
        ),
    ]


def stripes_add_up(code: str, results: CellResults, stripes) -> dict:
    """C9: trained on stripes alone, a decoder draws both of a point, added (Figure 4b).

    `stripes` are its signals (T, 2N, N, N) for one factor and the true ones (2N, N, N). It has
    seen no point, so that learning is asked of the stripes: the brightest line is the right one.
    Correlations, of the pixels of each image, ignore a level that all pixels share, which
    stripes do not teach: f(x) + f(y) - f(no factor) is additive too.
    """
    plus = signals.stripes_sum(stripes[1], results.held_out)
    return entry(
        "C9",
        code,
        results.seeds,
        stripe_accuracy(*stripes),
        figure="Fig 4b",
        statement="trained on stripes alone, decoders draw both stripes of held-out points, added",
        trained_name="accuracy on the stripes",
        conditions={
            "between bump (0) and plus (1)": Condition(_plus_likeness(results, plus), "above", 0.5),
            "MSE OOD to the plus / a blank image's": Condition(
                _mse_to(results, plus) / np.square(plus).mean(), "below", 0.5
            ),
            "accuracy OOD within 1 pixel": Condition(
                mean_score(results, "position_accuracy", results.held_out), "above", 0.9
            ),
        },
        details={
            "exact accuracy OOD": mean_score(results, "exact_accuracy", results.held_out),
            "correlation OOD with the plus": _correlation(results, plus),
            "correlation OOD with the bump": _correlation(results, _ood_targets(results)),
            "MSE OOD to the bump / a blank image's": _mse_to(results, _ood_targets(results))
            / _blank_mse(results),
            "MSE OOD to the brighter of both stripes / a blank image's": _relative_to_union(
                results, stripes[1]
            ),
        },
    )


def few_bumps_multiply(code: str, by_bumps: dict[int, CellResults], few: int, stripes) -> dict:
    """C10: a few bumps among the stripes turn the plus into a bump (Figures 4b and 7b).

    `by_bumps` has the results by number of bumps, none among them; `few` is the number that must
    be enough; `stripes` as in `stripes_add_up`.
    """
    plus = signals.stripes_sum(stripes[1], by_bumps[few].held_out)
    likeness = {n: _plus_likeness(results, plus) for n, results in by_bumps.items()}
    blank = _blank_mse(by_bumps[few])
    error = {n: _mse_to(one, _ood_targets(one)) / blank for n, one in by_bumps.items()}
    return entry(
        "C10",
        code,
        by_bumps[few].seeds,
        np.minimum(exact_id(by_bumps[few]), stripe_accuracy(*stripes)),
        figure="Fig 4b, 7b",
        statement=f"{few} bumps beside the stripes turn the plus into a bump on held-out points",
        conditions={
            f"between bump (0) and plus (1), {few} bumps": Condition(likeness[few], "below", 0.5),
            "the same, no bump": Condition(likeness[0], "above", 0.5),
            f"MSE OOD / blank image's, {few} bumps": Condition(error[few], "below", 0.5),
        },
        details={
            f"exact accuracy OOD, {n} bumps": mean_score(one, "exact_accuracy", one.held_out)
            for n, one in by_bumps.items()
        }
        | {f"MSE OOD / blank image's, {n} bumps": value for n, value in error.items()},
    )


def volume_stays_smooth(code: str, trained, with_stripes, bumps_only) -> dict:
    """C12: with stripes, the volume element stays smooth over the hole (Figure 4d).

    Inspections of two networks with the same hole and paired seeds, one trained on stripes and a
    few bumps, the other on many bumps alone; means over the hidden layers.
    """
    numbers = {"stripes": with_stripes.numbers, "bumps alone": bumps_only.numbers}
    ratio = {name: hidden(n["volume.log10_ratio"]) for name, n in numbers.items()}
    size = {name: hidden(np.abs(n["volume.log10_ratio"])) for name, n in numbers.items()}
    spread = {name: hidden(n["volume.ood_spread"]) for name, n in numbers.items()}
    difference = lambda values: values["stripes"] - values["bumps alone"]
    return entry(
        "C12",
        code,
        with_stripes.seeds,
        trained,
        figure="Fig 4d",
        statement="with stripes, the volume element stays smoother over the hole than with bumps "
        "alone",
        conditions={
            "size of log10 volume, OOD minus ID, stripes minus bumps alone": Condition(
                difference(size), "below", 0.0
            ),
            "sd of log10 volume over the hole, stripes minus bumps alone": Condition(
                difference(spread), "below", 0.0
            ),
        },
        details={f"log10 volume, OOD minus ID, {name}": value for name, value in ratio.items()}
        | {f"sd of log10 volume over the hole, {name}": value for name, value in spread.items()},
    )


def units_turn_from_stripes_to_bumps(code: str, trained, with_stripes, bumps_only) -> dict:
    """C13: with stripes and bumps, early units are stripe-tuned and late ones bump-tuned
    (Figures 4e, 4f and 15).

    Of a unit's variance over all points: the *one-factor share*, the larger of what x and what y
    explain alone (1 for a stripe, a half for a plus), and the *product share*, what one product
    of x and y explains beyond them (.6 to .8 for a bump, 0 for stripe and plus, .2 or less for
    noise); means over active units. `bumps_only` is shown for comparison.
    """
    one_factor, product = (with_stripes.numbers[f"tuning.{n}"] for n in ("one_factor", "product"))
    first, last = 1, -2  # of the hidden layers, between the code and the drawn signal
    return entry(
        "C13",
        code,
        with_stripes.seeds,
        trained,
        figure="Fig 4e, f, 15",
        statement="trained on stripes and a few bumps, early units are tuned to stripes, late ones "
        "to bumps",
        conditions={
            "one-factor share, first hidden layer": Condition(one_factor[:, first], "above", 0.5),
            "one-factor share, first minus last hidden layer": Condition(
                one_factor[:, first] - one_factor[:, last], "above", 0.0
            ),
            "product share, last minus first hidden layer": Condition(
                product[:, last] - product[:, first], "above", 0.0
            ),
            "product minus one-factor share, last hidden layer": Condition(
                product[:, last] - one_factor[:, last], "above", 0.0
            ),
        },
        details={
            f"{title} share, {where} hidden layer, {name}": found.numbers[f"tuning.{key}"][:, layer]
            for name, found in (("stripes", with_stripes), ("bumps alone", bumps_only))
            for title, key in (("one-factor", "one_factor"), ("product", "product"))
            for where, layer in (("first", first), ("last", last))
        },
    )


def stripe_accuracy(signals_Tx2NxHxW, targets_2NxHxW):
    """(T,) share of stripes whose brightest line, by its mean, is the right one."""
    grid = len(targets_2NxHxW) // 2
    vertical, horizontal = signals_Tx2NxHxW[:, :grid], signals_Tx2NxHxW[:, grid:]
    lines = [vertical.mean(axis=2).argmax(axis=-1), horizontal.mean(axis=3).argmax(axis=-1)]
    return np.mean([line == np.arange(grid)[None] for line in lines], axis=(0, 2))


def _ood_targets(results):
    return results.targets[results.held_out]


def _mse_to(results, images_QxHxW):
    """(T,) mean squared error of what is drawn for held-out cells."""
    drawn = results.signals[:, results.held_out]
    return np.square(drawn - images_QxHxW[None]).mean(axis=(1, 2, 3))


def _plus_likeness(results, plus):
    """(T,) MSE OOD to the bump over its sum with that to the plus: 0 for bumps, 1 for pluses,
    and below .5 for what is nearer to the bump."""
    to_bump, to_plus = _mse_to(results, _ood_targets(results)), _mse_to(results, plus)
    return to_bump / (to_bump + to_plus)


def _correlation(results, images_QxHxW):
    """(T,) mean correlation over pixels of what is drawn for held-out cells with images."""
    flat = lambda images: images.reshape(*images.shape[:-2], -1)
    standard = lambda v: (
        (v - v.mean(axis=-1, keepdims=True)) / np.maximum(v.std(axis=-1, keepdims=True), 1e-12)
    )
    drawn, asked = (
        standard(flat(images)) for images in (results.signals[:, results.held_out], images_QxHxW)
    )
    return (drawn * asked[None]).mean(axis=(1, 2))


def _relative_to_union(results, stripes_2NxHxW):
    """The other way to draw both stripes: each pixel as bright as the brighter of them."""
    union = signals.stripes_union(stripes_2NxHxW, results.held_out)
    return _mse_to(results, union) / np.square(union).mean()


def _log_mse(results, held_out: bool):
    """(T,) log10 of the mean squared error over one region."""
    region = results.held_out == held_out
    return np.log10(evaluation.errors(results)[:, region].mean(axis=1))


def _blank_mse(results):
    return np.square(_ood_targets(results)).mean()
