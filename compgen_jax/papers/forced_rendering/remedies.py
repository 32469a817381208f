"""C8 to C10, C12 and C13: the two remedies, low rank and stripes (Figures 3, 4, 7 and 15)."""

from typing import NamedTuple

import numpy as np

from compgen_jax.metrics import evaluation
from compgen_jax.metrics.evaluation import CellResults, mean_score
from compgen_jax.old_claims import Condition, entry, exact_id, median_over_checkpoints
from compgen_jax.papers.forced_rendering import controls, signals
from compgen_jax.papers.forced_rendering.mechanism import hidden
from compgen_jax.statistics import median_with_interval

# which of the penalties (entropy, variance) each keeps
ABLATIONS = {"none": (0, 0), "entropy": (1, 0), "variance": (0, 1), "both": (1, 1)}
EMBEDDING_NUMBERS = {
    "top_share": "energy in the largest singular value",
    "constant_share": "energy constant along the other axis",
}
SHARES = "one_factor", "product"  # of a unit's variance
QUARTER = 0.25  # of a blank image's error
FACTOR_OF_TWO = float(np.log10(2))  # what separates helping little from helping much


def penalties_on_embeddings(ablations: dict[str, CellResults], embeddings: dict) -> list[dict]:
    """C8: what the two penalties do to the low-rank decoder (Figure 3e), three statements.

    `ablations` has the results of `ABLATIONS`. As stated, one ablation's log10 MSE is on the
    paper's side of each other's in the median over seeds, which are paired; stricter, of the best
    of the others in every seed, in the mean. Learning is asked of the network without penalties
    only, as what the others lose is part of the claim. `embeddings` has, by ablation, the seeds'
    `top_share` and `constant_share`, which tell low rank from constancy along the other factor's
    axis.
    """
    ood, seen = (
        {
            name: median_over_checkpoints(_log_mse(one, held_out), one.seeds)
            for name, one in ablations.items()
        }
        for held_out in (True, False)
    )
    none, both = ablations["none"], ablations["both"]
    settings = {
        "code": "onehot",
        "seeds": none.seeds,
        "trained_T": exact_id(none),
        "figure": "Fig 3e",
    }
    blank = np.log10(_blank_mse(both))
    without = lambda errors, name: [errors[n] for n in ABLATIONS if n != name]
    return [
        entry(
            "C8",
            **settings,
            statement="without penalties, the error is the lowest ID and the highest OOD",
            as_stated=_medians(ood, "OOD", "none", "above") | _medians(seen, "ID", "none", "below"),
            stricter={
                "log10 MSE OOD, none minus the highest of the others": Condition(
                    ood["none"] - np.max(without(ood, "none"), axis=0), "above", 0.0
                ),
                "log10 MSE ID, none minus the lowest of the others": Condition(
                    seen["none"] - np.min(without(seen, "none"), axis=0), "below", 0.0
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
            as_stated=_medians(ood, "OOD", "none", "above", ["variance"], FACTOR_OF_TWO)
            | _medians(ood, "OOD", "none", "below", ["entropy"], FACTOR_OF_TWO)
            | _medians(seen, "ID", "variance", "above", ["none"]),
            stricter={
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
        ),
        entry(
            "C8",
            **settings,
            statement="both penalties together are best OOD",
            as_stated=_medians(ood, "OOD", "both", "below")
            | {
                "median log10 MSE OOD of both, over a blank image's": Condition(
                    median_with_interval(ood["both"] - blank), "below", 0.0
                )
            },
            stricter={
                "log10 MSE OOD, both minus the lowest of the others": Condition(
                    ood["both"] - np.min(without(ood, "both"), axis=0), "below", 0.0
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


def _medians(errors: dict, region: str, name: str, side: str, others=ABLATIONS, bound=0.0) -> dict:
    """Conditions on the median over seeds of one ablation's log10 MSE minus each other's."""
    return {
        f"median log10 MSE {region}, {name} minus {other}": Condition(
            median_with_interval(errors[name] - errors[other]), side, bound
        )
        for other in others
        if other != name
    }


class Stripes(NamedTuple):
    """Of seeds trained on stripes: what they draw for one factor, (T, 2N, N, N), and for none, (T,
    N, N), and the true stripes (2N, N, N), the N vertical ones first."""

    drawn: np.ndarray
    null: np.ndarray
    true: np.ndarray


def stripes_add_up(code: str, results: CellResults, stripes: Stripes, shown: str = "") -> dict:
    """C9: trained on stripes alone, a decoder draws both of a point, added (Figure 4b).

    Each OOD signal is fitted by a level, both stripes (their sum's weight is the additive one) and
    their product, the true bump (`weights`). Stripes do not teach the level: s_x + s_y - c is as
    additive as any, and adding two inverted images is c = 1. As stated, the additive weight must
    exceed the product's, and the fit explain half of the signal's variance over its pixels or more,
    as blank images, noise and bumps elsewhere have weights as well. Stricter, f(x, y) must be the
    network's own f(x) + f(y) - f(no factor). It has seen no point, so that learning is asked of the
    stripes: the brightest line is the right one. `shown` says how they were.
    """
    additive, product, r2 = weights(results, stripes.true)
    alone = own_sum_r2(results, stripes)
    plus = signals.stripes_sum(stripes.true, results.held_out)
    return entry(
        "C9",
        ", ".join(filter(None, (code, shown))),
        results.seeds,
        stripe_accuracy(stripes.drawn, stripes.true),
        figure="Fig 4b",
        statement="trained on stripes alone, decoders draw both stripes of held-out points, added",
        trained_name="accuracy on the stripes",
        as_stated={
            "additive weight minus product weight": Condition(additive - product, "above", 0.0),
            "R2 on level, stripes and product": Condition(r2, "above", 0.5),
        },
        stricter={"R2 of the network's own f(x) + f(y) - f()": Condition(alone, "above", 0.5)},
        details={
            "additive weight": additive,
            "product weight": product,
            "accuracy OOD within 1 pixel": mean_score(
                results, "position_accuracy", results.held_out
            ),
            "exact accuracy OOD": mean_score(results, "exact_accuracy", results.held_out),
            "correlation OOD with the plus": _correlation(results, plus),
            "correlation OOD with the bump": _correlation(results, _ood_targets(results)),
            "MSE OOD to the plus / a blank image's": _mse_to(results, plus)
            / np.square(plus).mean(),
            "MSE OOD to the bump / a blank image's": _relative_mse(results),
        },
    )


def weights(results: CellResults, stripes_2NxHxW):
    """(T,) each: means over OOD signals of the weights of the stripes' sum and of their product,
    fitted together with a level, and of the fit's R^2 over pixels (0 of a constant signal)."""
    parts = [
        signals.stripes_sum(stripes_2NxHxW, results.held_out),
        signals.stripes_product(stripes_2NxHxW, results.held_out, results.amplitude),
    ]
    parts_QxPx2 = np.stack([part.reshape(len(part), -1) for part in parts], axis=-1)
    drawn = np.asarray(results.predictions[:, results.held_out], np.float64)
    drawn_TxQxP = drawn.reshape(*drawn.shape[:2], -1)
    # both centred over pixels, which fits the level
    parts_QxPx2 = parts_QxPx2 - parts_QxPx2.mean(axis=1, keepdims=True)
    drawn_TxQxP = drawn_TxQxP - drawn_TxQxP.mean(axis=2, keepdims=True)
    found_TxQx2 = np.einsum("qkp,tqp->tqk", np.linalg.pinv(parts_QxPx2), drawn_TxQxP)
    left_TxQxP = drawn_TxQxP - np.einsum("tqk,qpk->tqp", found_TxQx2, parts_QxPx2)
    r2 = _explained(left_TxQxP, drawn_TxQxP)
    return found_TxQx2[..., 0].mean(axis=1), found_TxQx2[..., 1].mean(axis=1), r2.mean(axis=1)


def own_sum_r2(results: CellResults, stripes: Stripes):
    """(T,) mean over OOD signals of the R^2 over pixels of f(x) + f(y) - f(no factor)."""
    drawn = np.asarray(results.predictions[:, results.held_out], np.float64)
    sums = [signals.stripes_sum(own, results.held_out) for own in stripes.drawn]
    left = drawn - (np.stack(sums) - stripes.null[:, None])
    flat = lambda images: images.reshape(*images.shape[:2], -1)
    centred = flat(drawn) - flat(drawn).mean(axis=2, keepdims=True)
    return _explained(flat(left), centred).mean(axis=1)


def _explained(left_TxQxP, whole_TxQxP):
    total = np.square(whole_TxQxP).sum(axis=2)
    share = np.square(left_TxQxP).sum(axis=2) / np.where(total > 0, total, 1)
    return np.where(total > 0, 1 - share, 0.0)


def few_bumps_multiply(code: str, by_bumps: dict[int, CellResults], few: int, stripes) -> dict:
    """C10: a few bumps among the stripes give proper bumps (Figures 4b and 7b).

    `by_bumps` has the results by number of bumps, none among them; `few` is the number that must
    be enough; `stripes` as in `stripes_add_up`.
    """
    product = {n: weights(results, stripes.true)[1] for n, results in by_bumps.items()}
    results = by_bumps[few]
    trivial = controls.trivial_errors(results)
    best = min(trivial, key=trivial.get)
    return entry(
        "C10",
        code,
        results.seeds,
        np.minimum(exact_id(results), stripe_accuracy(stripes.drawn, stripes.true)),
        figure="Fig 4b, 7b",
        statement="a few bumps beside the stripes give proper bumps on held-out points",
        as_stated={
            f"product weight, {few} bumps": Condition(product[few], "above", 0.5),
            f"MSE OOD / blank image's, {few} bumps": Condition(
                _relative_mse(results), "below", QUARTER, ratio=True
            ),
            f"product weight, {few} bumps minus none": Condition(
                product[few] - product[0], "above", 0.0
            ),
        },
        stricter={
            f"exact accuracy OOD, {few} bumps": Condition(
                mean_score(results, "exact_accuracy", results.held_out),
                "above",
                0.9,
                results.held_out.sum(),
            ),
            f"MSE OOD / the best trivial predictor's ({best})": Condition(
                _relative_mse(results) / trivial[best], "below", 1.0, ratio=True
            ),
        },
        details={
            f"exact accuracy OOD, {n} bumps": mean_score(one, "exact_accuracy", one.held_out)
            for n, one in by_bumps.items()
        }
        | {f"MSE OOD / blank image's, {n} bumps": _relative_mse(one) for n, one in by_bumps.items()}
        | {f"product weight, {n} bumps": values for n, values in product.items()},
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
    nearer = {
        "size of log10 volume, OOD minus ID, stripes minus bumps alone": Condition(
            difference(size), "below", 0.0
        )
    }
    return entry(
        "C12",
        code,
        with_stripes.seeds,
        trained,
        figure="Fig 4d",
        statement="with stripes, the volume element stays smoother over the hole than with bumps "
        "alone",
        as_stated=nearer,
        stricter=nearer
        | {
            "sd of log10 volume over the hole, stripes minus bumps alone": Condition(
                difference(spread), "below", 0.0
            )
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
    noise); means over active units in proportion to their variance. From the first to the last
    hidden layer the former must fall and the latter rise; stricter, by more than in the same
    network before training, whose convolutions localise as well. `bumps_only` is shown for
    comparison.
    """
    change = {
        (network, untrained, share): found.numbers[name][:, -2] - found.numbers[name][:, 1]
        for network, found in (("stripes", with_stripes), ("bumps alone", bumps_only))
        for untrained in ("", "untrained.")
        for share in SHARES
        for name in [f"{untrained}tuning.weighted_{share}"]
    }
    sides = dict(zip(SHARES, ("below", "above"), strict=True))
    titles = {share: f"{share.replace('_', '-')} share, last minus first hidden layer"
              for share in SHARES}  # fmt: skip
    return entry(
        "C13",
        code,
        with_stripes.seeds,
        trained,
        figure="Fig 4e, f, 15",
        statement="trained on stripes and a few bumps, early units are tuned to stripes, late ones "
        "to bumps",
        as_stated={
            titles[share]: Condition(change["stripes", "", share], side, 0.0)
            for share, side in sides.items()
        },
        stricter={
            f"{titles[share]}, less that before training": Condition(
                change["stripes", "", share] - change["stripes", "untrained.", share], side, 0.0
            )
            for share, side in sides.items()
        },
        details={
            f"{titles[share]}, {network}": change[network, "", share]
            for network in ("stripes", "bumps alone")
            for share in SHARES
        },
    )


def stripe_accuracy(signals_Tx2NxHxW, targets_2NxHxW):
    """(T,) share of stripes whose brightest line, by its mean, is the right one."""
    grid = len(targets_2NxHxW) // 2
    vertical, horizontal = signals_Tx2NxHxW[:, :grid], signals_Tx2NxHxW[:, grid:]
    lines = [vertical.mean(axis=2).argmax(axis=-1), horizontal.mean(axis=3).argmax(axis=-1)]
    return np.mean([line == np.arange(grid)[None] for line in lines], axis=(0, 2))


def _ood_targets(results):
    return results.truths[results.held_out]


def _mse_to(results, images_QxHxW):
    """(T,) mean squared error of what is drawn for held-out cells."""
    drawn = results.predictions[:, results.held_out]
    return np.square(drawn - images_QxHxW[None]).mean(axis=(1, 2, 3))


def _relative_mse(results):
    """(T,) of what is drawn for held-out cells, over a blank image's."""
    return _mse_to(results, _ood_targets(results)) / _blank_mse(results)


def _correlation(results, images_QxHxW):
    """(T,) mean correlation over pixels of what is drawn for held-out cells with images."""
    flat = lambda images: images.reshape(*images.shape[:-2], -1)
    standard = lambda v: (
        (v - v.mean(axis=-1, keepdims=True)) / np.maximum(v.std(axis=-1, keepdims=True), 1e-12)
    )
    drawn, asked = (
        standard(flat(images))
        for images in (results.predictions[:, results.held_out], images_QxHxW)
    )
    return (drawn * asked[None]).mean(axis=(1, 2))


def _log_mse(results, held_out: bool):
    """(T,) log10 of the mean squared error over one region."""
    region = results.held_out == held_out
    return np.log10(evaluation.errors(results)[:, region].mean(axis=1))


def _blank_mse(results):
    return np.square(_ood_targets(results)).mean()
