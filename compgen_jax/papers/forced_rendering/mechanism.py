"""C4 to C7: what the layers say (Figures 1d, 1e, 2, 8, 11 to 14).

Functions of inspections, whose `numbers` hold (T, L) arrays by name, layers in order with the
code first and the drawn signal last, and whose `outputs` hold (T,) arrays. `trained` is the
exact accuracy ID of every seed (T,), of the worse network where two are compared.
"""

from typing import NamedTuple

import numpy as np

from compgen_jax.metrics import kernels, layers, superposition
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.old_claims import Condition, entry, with_interval
from compgen_jax.papers.forced_rendering import known_maps

CONSTRUCTION = {"bump": "mean_code", "ramp": "sums"}  # the paper's, by code (E6, E7)
CODES = tuple(CONSTRUCTION)  # of the networks that the paper looks into
LARGE_EFFECT = 0.8  # Cohen's convention
CLEARLY, MOST = 0.05, 0.75  # of R^2: see `superposes`; the former of a correlation too
AGREEMENTS = ("binary", "true", "partial")


class Ideal(NamedTuple):
    """What maps whose answer is known score at the same grid and hold-out (`known_maps`): R^2 on
    the sums of matching outputs over the inner hole, of the superposer and of the true bump; how
    much more the superposer's similarity agrees with the binary kernel than with the true images';
    and how binary the lookup's is beyond these."""

    superposer_r2: float
    bump_r2: float
    superposer_binary: float
    lookup_partial: float


def ideal(results: CellResults) -> Ideal:
    """At the grid and around the square of some results."""
    where = known_maps.world_of(results.truths, results.held_out)
    true = similarity(results.truths)
    found = {
        name: output_numbers(known_maps.images(name, where), results, true)
        for name in ("superposer", "bump", "lookup")
    }
    superposer = found["superposer"]
    return Ideal(
        superposer["output.superposition.sums.inner_r2"],
        found["bump"]["output.superposition.sums.inner_r2"],
        superposer["output.cosine.cross_binary"] - superposer["output.cosine.cross_true"],
        found["lookup"]["output.cosine.cross_partial"],
    )


def similarity(signals_BxNxN):
    """(B, B) cosine similarity of what is drawn at all cells."""
    return kernels.cosine(kernels.gram(signals_BxNxN.reshape(len(signals_BxNxN), -1)))


def output_numbers(signals_BxNxN, results: CellResults, true_BxB) -> dict:
    """What an inspection measures of signals at every cell that needs no network; `true_BxB` is
    the `similarity` of the true ones."""
    held_out, points = results.held_out, results.factors
    numbers = layers.agreements(similarity(signals_BxNxN), points, held_out, true_BxB)
    found = {f"output.cosine.{name}": value for name, value in numbers.items()}
    outputs = np.asarray(signals_BxNxN, np.float64).reshape(len(signals_BxNxN), -1)
    sums = superposition.matching_sums(outputs[~held_out], points[~held_out], points[held_out])
    scores = superposition.scores(
        outputs[held_out], sums, points[held_out], results.distance[held_out]
    )
    return found | {f"output.superposition.sums.{name}": v for name, v in scores.items()}


def superposes(code: str, trained, inspection, ideal: Ideal) -> dict:
    """C4: f(x, y) is f(x super) + f(y super) (Figure 1d).

    R^2 of the OOD output on its two superpositions, over held-out points at least half as far from
    the seen ones as the farthest: in the construction that the paper uses for the code, above that
    on the superpositions of points that share neither x nor y (by `CLEARLY`, as a true bump has
    .0004 more); stricter, in sums of matching outputs, at least `MOST` of what an ideal superposer
    scores (the nearest seen image has .52 to .55 of it) and more than true bumps do.
    """
    outputs = {
        f"{name}, {whose}": inspection.outputs[f"output.superposition.{name}.inner_{key}"]
        for name in ("mean_code", "sums")
        for whose, key in (("own", "r2"), ("other points'", "shuffled_r2"))
    }
    own = CONSTRUCTION[code]
    sums = outputs["sums, own"]
    return entry(
        "C4",
        code,
        inspection.seeds,
        trained,
        figure="Fig 1d",
        statement=f"with the {code} code, an OOD output is the sum of its superpositions",
        as_stated={
            "R2 on the superpositions, over that of other points'": Condition(
                outputs[f"{own}, own"] - outputs[f"{own}, other points'"], "above", CLEARLY
            )
        },
        stricter={
            "R2 on sums, over an ideal superposer's": Condition(
                sums / ideal.superposer_r2, "above", MOST
            ),
            "R2 on sums, less that of true bumps": Condition(sums - ideal.bump_r2, "above", 0.0),
        },
        details={f"R2, construction {name}": values for name, values in outputs.items()},
    )


def resembles_binary_kernel(code: str, trained, inspection, ideal: Ideal) -> dict:
    """C5: the OOD similarity matrix is the binary factorized kernel (Figures 1e and 8).

    Over pairs of a held-out and a seen cell, as in the section of Figure 8 that the paper points
    at. An ideal superposer, whose sums are of the nearest seen images alone, fails as well: of a
    network that is not clearly further from the binary kernel than that, nothing is concluded.
    Stricter, its structure beyond the true images' (whose neighbours overlap) must exceed that of
    the nearest seen image.
    """
    outputs = inspection.outputs
    binary, true, partial = (outputs[f"output.cosine.cross_{n}"] for n in AGREEMENTS)
    apart = with_interval(binary - true)
    if ideal.superposer_binary - CLEARLY <= apart["ci95"][1] <= 0:
        apart["unless"] = "an ideal superposer fails as well"
    return entry(
        "C5",
        code,
        inspection.seeds,
        trained,
        figure="Fig 1e, 8",
        statement=f"with the {code} code, the OOD similarity matrix is the binary kernel",
        as_stated={
            "agreement with the binary kernel, over that with the true images'": Condition(
                apart, "above", 0.0
            )
        },
        stricter={
            "agreement beyond the true images', over that of a lookup": Condition(
                partial - ideal.lookup_partial, "above", 0.0
            )
        },
        details={
            "of an ideal superposer, binary over true": np.full(
                len(binary), ideal.superposer_binary
            ),
            "agreement with the binary kernel": binary,
            "agreement with the true images' kernel": true,
            "agreement with the binary kernel beyond the true images'": partial,
        },
    )


def clearer_for_bump(trained, bump, ramp) -> dict:
    """C5: the binary structure is clearer for the bump code than for the ramp (Figure 8)."""
    found = {
        name: [one.outputs[f"output.cosine.cross_{name}"] for one in (bump, ramp)]
        for name in ("binary", "partial")
    }
    difference = lambda name: Condition(found[name][0] - found[name][1], "above", 0.0)
    return entry(
        "C5",
        "bump, ramp",
        bump.seeds,
        trained,
        figure="Fig 8",
        statement="the binary kernel's structure is clearer for the bump code than for the ramp",
        as_stated={"agreement with the binary kernel, bump minus ramp": difference("binary")},
        stricter={"agreement beyond the true images', bump minus ramp": difference("partial")},
        details=dict(zip(("bump", "ramp"), found["partial"], strict=True)),
    )


DECAYING = {  # what falls with depth: the paper's score as the authors' code has it, and ours
    "decodability R2 OOD": lambda numbers: numbers["probe.ood_r2"],
    "the paper's score": lambda numbers: numbers["factorization.ratio_of_means"],
    "additive share of variance": lambda numbers: 1 - numbers["anova.interaction"],
}
AS_STATED, OURS = ("decodability R2 OOD", "the paper's score"), (
    "decodability R2 OOD", "additive share of variance")  # fmt: skip


def decays_with_depth(code: str, trained, inspection, composer=None) -> dict:
    """C6: factorization and linear decodability fall with depth (Figure 2a-d).

    Slopes from the code to the last hidden layer. Any decoder's features turn from the code into
    an image, so that a perfect composer's fall as well: the stricter reading asks for a steeper
    fall than that of a `composer`, an inspection of a network of the same depth and paired seeds
    that composes what was held out of it at random; without one it concludes nothing. It measures
    factorization by the share of the features' variance in x alone and y alone, as the paper's own
    score does not tell composition from lookup or noise.
    """
    slopes = {name: slope(one(inspection.numbers)) for name, one in DECAYING.items()}
    steeper = {
        name: _beyond(slopes[name], composer, lambda numbers, one=one: slope(one(numbers)))
        for name, one in DECAYING.items()
    }
    return entry(
        "C6",
        code,
        inspection.seeds,
        trained,
        figure="Fig 2a-d",
        statement=f"with the {code} code, factorization and linear decodability fall with depth",
        as_stated={
            f"slope of {name}, per layer": Condition(slopes[name], "below", 0.0)
            for name in AS_STATED
        },
        stricter={
            f"slope of {name}, less that of a decoder that composes": Condition(
                steeper[name], "below", 0.0
            )
            for name in OURS
        },
        details={f"slope of {name}": values for name, values in slopes.items()},
    )


def shallow_ramp_is_sharper(trained, shallow, deep) -> dict:
    """C6: the drop is sharper in shallow ramp networks (Figure 2b, d), at equal relative depth."""
    change = {
        name: slope(one(shallow.numbers), relative=True) - slope(one(deep.numbers), relative=True)
        for name, one in DECAYING.items()
    }
    conditions = {
        names: {
            f"slope of {name} on relative depth, shallow minus deep": Condition(
                change[name], "below", 0.0
            )
            for name in names
        }
        for names in (AS_STATED, OURS)
    }
    return entry(
        "C6",
        "ramp",
        shallow.seeds,
        trained,
        figure="Fig 2b, d",
        statement="factorization falls more sharply in shallow ramp networks than in deep ones",
        as_stated=conditions[AS_STATED],
        stricter=conditions[OURS],
    )


def distorts_volume(code: str, trained, inspection, composer=None) -> dict:
    """C7: the volume element is distorted in the OOD region, more with depth (Figure 2e, f).

    In the last hidden layer; the distortion is the size of log10 of the volume over OOD cells
    relative to ID cells. The stricter reading leaves out cells near the border, where bumps are
    cut, and asks for more than in a `composer` (see `decays_with_depth`).
    """
    numbers = inspection.numbers
    of_inner = lambda numbers: np.abs(last(numbers["volume.inner_effect"]))
    inner = of_inner(numbers)
    return entry(
        "C7",
        code,
        inspection.seeds,
        trained,
        figure="Fig 2e, f, 11, 12",
        statement=f"with the {code} code, the volume element of OOD cells differs from ID cells'",
        as_stated={
            "size of the difference of log volumes, in standard deviations": Condition(
                np.abs(last(numbers["volume.effect"])), "above", LARGE_EFFECT
            ),
            "slope of the distortion, per layer": Condition(
                slope(np.abs(numbers["volume.log10_ratio"])), "above", 0.0
            ),
        },
        stricter={
            "size of the difference, border cells left out": Condition(
                inner, "above", LARGE_EFFECT
            ),
            "the same, less that of a decoder that composes": Condition(
                _beyond(inner, composer, of_inner), "above", 0.0
            ),
        },
        details={"log10 volume, OOD minus ID": last(numbers["volume.log10_ratio"])},
    )


def mlp_is_opposite(code: str, trained, conv, mlp) -> dict:
    """C7: MLPs distort the volume the opposite way to CNNs (Figures 11 to 14), in the last hidden
    layer; stricter, both by a large effect, border cells left out."""
    ratios = [last(one.numbers["volume.log10_ratio"]) for one in (conv, mlp)]
    effects = [last(one.numbers["volume.inner_effect"]) for one in (conv, mlp)]
    opposite = {
        "product of the CNN's and the MLP's log10 volume, OOD minus ID": Condition(
            ratios[0] * ratios[1], "below", 0.0
        )
    }
    return entry(
        "C7",
        code,
        conv.seeds,
        trained,
        figure="Fig 11-14",
        statement=f"with the {code} code, MLPs distort the OOD volume the opposite way to CNNs",
        as_stated=opposite,
        stricter=opposite
        | {
            f"size of the {name}'s difference, in standard deviations": Condition(
                np.abs(effect), "above", LARGE_EFFECT
            )
            for name, effect in zip(("CNN", "MLP"), effects, strict=True)
        },
        details={"CNN": ratios[0], "MLP": ratios[1]},
    )


def _beyond(values_T, composer, measure):
    """The values less what `measure` gives of the composer's numbers; NaN without a composer."""
    return values_T - (measure(composer.numbers) if composer else np.nan)


def slope(values_TxL, relative: bool = False):
    """(T,) least-squares slope from the code, layer 0, to the last hidden layer, without the drawn
    signal; per layer, or over the whole way."""
    values = values_TxL[:, :-1]
    layers = np.arange(values.shape[1], dtype=np.float64)
    if relative:
        layers /= layers[-1]
    layers -= layers.mean()
    return values @ layers / np.square(layers).sum()


def last(values_TxL):
    """(T,) of the last hidden layer."""
    return values_TxL[:, -2]


def hidden(values_TxL):
    """(T,) mean over the hidden layers: neither the code nor the drawn signal."""
    return values_TxL[:, 1:-1].mean(axis=1)
