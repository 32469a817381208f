"""C4 to C7: what the layers say (Figures 1d, 1e, 2, 8, 11 to 14).

Functions of inspections, whose `numbers` hold (T, L) arrays by name, layers in order with the
code first and the drawn signal last, and whose `outputs` hold (T,) arrays. `trained` is the
exact accuracy ID of every seed (T,), of the worse network where two are compared.
"""

import numpy as np

from compgen_jax.claims.verdicts import Condition, entry

CONSTRUCTION = {"bump": "mean_code", "ramp": "sums"}  # the paper's, by code (E6, E7)
CODES = tuple(CONSTRUCTION)  # of the networks that the paper looks into
LARGE_EFFECT = 0.8  # Cohen's convention


def superposes(code: str, trained, inspection) -> dict:
    """C4: f(x, y) is f(x super) + f(y super) (Figure 1d).

    R^2 of the OOD output on its two superpositions, in the construction that the paper uses for
    the code, beside that on the superpositions of points that share neither x nor y. (A true
    bump scores .01, an additive plus .4, for sums of matching outputs.)
    """
    fits = {
        name: (
            inspection.outputs[f"output.superposition.{name}.r2"],
            inspection.outputs[f"output.superposition.{name}.shuffled_r2"],
        )
        for name in ("mean_code", "sums")
    }
    r2, shuffled = fits.pop(CONSTRUCTION[code])
    ((other, (other_r2, other_shuffled)),) = fits.items()
    return entry(
        "C4",
        code,
        inspection.seeds,
        trained,
        figure="Fig 1d",
        statement=f"with the {code} code, an OOD output is the sum of its superpositions",
        conditions={
            "R2 on the superpositions": Condition(r2, "above", 0.5),
            "R2 over that of other points' superpositions": Condition(r2 - shuffled, "above", 0.0),
        },
        details={
            f"R2, construction {other}": other_r2,
            f"R2 of other points, construction {other}": other_shuffled,
        },
    )


def resembles_binary_kernel(code: str, trained, inspection) -> dict:
    """C5: the OOD similarity matrix is the binary factorized kernel (Figure 1e).

    True bumps of neighbouring cells overlap, so their own similarity already agrees somewhat with
    the binary kernel. The claim needs the binary kernel to fit better than the true images'
    kernel does, and to fit beyond it.
    """
    outputs = inspection.outputs
    return entry(
        "C5",
        code,
        inspection.seeds,
        trained,
        figure="Fig 1e, 8",
        statement=f"with the {code} code, the OOD similarity matrix is the binary kernel",
        conditions={
            "agreement with the binary kernel, over that with the true images'": Condition(
                outputs["output.cosine.binary"] - outputs["output.cosine.true"], "above", 0.0
            ),
            "agreement with the binary kernel beyond the true images'": Condition(
                outputs["output.cosine.partial"], "above", 0.0
            ),
        },
        details={
            "agreement with the binary kernel": outputs["output.cosine.binary"],
            "agreement with the true images' kernel": outputs["output.cosine.true"],
        },
    )


def clearer_for_bump(trained, bump, ramp) -> dict:
    """C5: the binary structure is clearer for the bump code than for the ramp (Figure 8)."""
    name = "output.cosine.partial"
    return entry(
        "C5",
        "bump, ramp",
        bump.seeds,
        trained,
        figure="Fig 8",
        statement="the binary kernel's structure is clearer for the bump code than for the ramp",
        conditions={
            "agreement beyond the true images', bump minus ramp": Condition(
                bump.outputs[name] - ramp.outputs[name], "above", 0.0
            )
        },
        details={"bump": bump.outputs[name], "ramp": ramp.outputs[name]},
    )


def decays_with_depth(code: str, trained, inspection) -> dict:
    """C6: factorization and linear decodability fall with depth (Figure 2a-d).

    Factorization is measured as the share of the features' variance in x alone and y alone, as
    the paper's own score does not tell composition from lookup or noise; its slope is reported.
    """
    numbers = inspection.numbers
    return entry(
        "C6",
        code,
        inspection.seeds,
        trained,
        figure="Fig 2a-d",
        statement=f"with the {code} code, factorization and linear decodability fall with depth",
        conditions={
            "slope of decodability R2 OOD, per layer": Condition(
                slope(numbers["probe.ood_r2"]), "below", 0.0
            ),
            "slope of the additive share of variance, per layer": Condition(
                slope(1 - numbers["anova.interaction"]), "below", 0.0
            ),
        },
        details={"slope of the paper's score": slope(numbers["factorization.mean_of_ratios"])},
    )


def shallow_ramp_is_sharper(trained, shallow, deep) -> dict:
    """C6: the drop is sharper in shallow ramp networks (Figure 2b, d)."""
    change = {
        name: slope(one(shallow.numbers)) - slope(one(deep.numbers))
        for name, one in {
            "decodability R2 OOD": lambda numbers: numbers["probe.ood_r2"],
            "additive share of variance": lambda numbers: 1 - numbers["anova.interaction"],
            "the paper's score": lambda numbers: numbers["factorization.mean_of_ratios"],
        }.items()
    }
    score = change.pop("the paper's score")
    return entry(
        "C6",
        "ramp",
        shallow.seeds,
        trained,
        figure="Fig 2b, d",
        statement="factorization falls more sharply in shallow ramp networks than in deep ones",
        conditions={
            f"slope of {name}, shallow minus deep": Condition(values, "below", 0.0)
            for name, values in change.items()
        },
        details={"slope of the paper's score, shallow minus deep": score},
    )


def distorts_volume(code: str, trained, inspection) -> dict:
    """C7: the volume element is distorted in the OOD region (Figure 2e, f)."""
    effect = hidden(inspection.numbers["volume.effect"])
    return entry(
        "C7",
        code,
        inspection.seeds,
        trained,
        figure="Fig 2e, f, 11, 12",
        statement=f"with the {code} code, the volume element of OOD cells differs from ID cells'",
        conditions={
            "size of the difference of log volumes, in standard deviations": Condition(
                np.abs(effect), "above", LARGE_EFFECT
            )
        },
        details={
            "log10 volume, OOD minus ID": hidden(inspection.numbers["volume.log10_ratio"]),
        },
    )


def mlp_is_opposite(code: str, trained, conv, mlp) -> dict:
    """C7: MLPs distort the volume the opposite way to CNNs (Figures 11 to 14)."""
    ratios = [hidden(one.numbers["volume.log10_ratio"]) for one in (conv, mlp)]
    return entry(
        "C7",
        code,
        conv.seeds,
        trained,
        figure="Fig 11-14",
        statement=f"with the {code} code, MLPs distort the OOD volume the opposite way to CNNs",
        conditions={
            "product of the CNN's and the MLP's log10 volume, OOD minus ID": Condition(
                ratios[0] * ratios[1], "below", 0.0
            )
        },
        details={"CNN": ratios[0], "MLP": ratios[1]},
    )


def slope(values_TxL):
    """(T,) least-squares slope over layers, the code being layer 0."""
    layers = np.arange(values_TxL.shape[1]) - (values_TxL.shape[1] - 1) / 2
    return values_TxL @ layers / np.square(layers).sum()


def hidden(values_TxL):
    """(T,) mean over the hidden layers: neither the code nor the drawn signal."""
    return values_TxL[:, 1:-1].mean(axis=1)
