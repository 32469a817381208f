"""What is measured of a prediction over a grid: similarities, superpositions, kernels, ranks."""

from functools import cached_property

import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import decomposition, kernels, layers, superposition
from compgen_jax.metrics.registry import Arrays, output_metric

SIMILARITIES = ("cosine", "l2", "overlap")
CONSTRUCTIONS = ("mean_code", "sums")
KERNELS = ("factorized", "isotropic")


class GridPrediction(Arrays):
    """What a network says at the B cells of a grid, in the order of `grids`.

    predictions: (B, D).  truths: (B, ...).  factors: (B, F).  held_out: (B,) bool.
    distance: (B,) to the nearest ID cell.  sizes: of the grid.
    true_similarities: those of the truths.
    mean_code_parts: (Q, F, D) what it draws for the held-out cells' parts, each beside the mean
      code, or None.
    places: (B, F) the cells' places in cells, or None if they have no distance.
    training_law: (V_F, ..., V_1) the share of the training points in each cell, or None.
    """

    @cached_property
    def similarities(self):
        return similarities(self.predictions, self.truths)

    @cached_property
    def superpositions(self) -> dict:
        """(Q, F, D) by construction; None if one cannot be made."""
        id_cells, ood_cells = self.factors[~self.held_out], self.factors[self.held_out]
        columns = zip(ood_cells.T, id_cells.T, strict=True)
        sums = None
        if all(np.isin(of_ood, of_id).all() for of_ood, of_id in columns):
            of_id = self.predictions[~self.held_out]
            sums = superposition.matching_sums(of_id, id_cells, ood_cells)
        return {"mean_code": self.mean_code_parts, "sums": sums}


def similarities(predictions_Bx, truths_Bx) -> dict:
    """The three similarities of Figure 8, of predictions on the truths' scale."""
    flat = np.asarray(predictions_Bx).reshape(len(predictions_Bx), -1)
    gram = kernels.gram(flat)
    largest = float(truths_Bx.max())
    return {
        "cosine": kernels.cosine(gram),
        "l2": kernels.l2(gram),
        "overlap": kernels.overlap(flat[:, None], amplitude=largest if largest > 0 else 1.0),
    }


@output_metric(*(f"output.{s}.{name}" for s in SIMILARITIES for name in layers.AGREEMENTS))
def similarity_agreements(similarities, factors_BxF, held_out_B, true_similarities) -> dict:
    correlations = {}
    for name, kernel in similarities.items():
        of_kernel = layers.agreements(kernel, factors_BxF, held_out_B, true_similarities[name])
        correlations |= {f"output.{name}.{key}": value for key, value in of_kernel.items()}
    return correlations


@output_metric("output.target_rank", "output.epsilon_rank")
def target_ranks(predictions_BxD, sizes) -> dict:
    """Ranks over the factors (Eq 13 to 17), the largest of any entry and factor."""
    ranks = [
        decomposition.target_rank(predictions_BxD, sizes, factor)
        for factor in decomposition.distinct_factors(sizes)
    ]
    names = "output.target_rank", "output.epsilon_rank"
    return dict(zip(names, np.max(ranks, axis=0), strict=True))


@output_metric("output.training_law_kl_rank_1", "output.training_law_kl_rank_2")
def training_law_ranks(training_law_G, sizes) -> dict:
    """How far the law of the training points is from a mixture of one, and of two, products (Eq
    18 to 20); the largest of one factor against the others."""
    divergences = [
        decomposition.distribution_rank(
            grids.unfold(training_law_G.ravel(), training_law_G.shape[::-1], factor), max_rank=2
        )
        for factor in decomposition.distinct_factors(sizes)
    ]
    names = (f"output.training_law_kl_rank_{k}" for k in (1, 2))
    return dict(zip(names, np.max(divergences, axis=0), strict=True))


@output_metric(*(f"output.superposition.{c}.{s}" for c in CONSTRUCTIONS
                 for s in superposition.SCORES))  # fmt: skip
def superposition_scores(superpositions, predictions_BxD, factors_BxF, held_out_B,
                         distance_B) -> dict:  # fmt: skip
    predictions = np.asarray(predictions_BxD, np.float64)[held_out_B]
    by_construction = {}
    for name, parts in superpositions.items():
        scores = superposition.scores(
            predictions, parts, factors_BxF[held_out_B], distance_B[held_out_B]
        )
        by_construction |= {
            f"output.superposition.{name}.{key}": value for key, value in scores.items()
        }
    return by_construction


@output_metric(*(f"output.kernel_regression.{name}_error" for name in KERNELS))
def kernel_regressions(places_BxF, predictions_BxD, truths_Bx, held_out_B) -> dict:
    """Errors of kernels on the factors, in cells, over a blank prediction's."""
    places = places_BxF.astype(np.float32)
    outputs = np.asarray(predictions_BxD, np.float64)[held_out_B]
    blank, errors = np.mean(truths_Bx[held_out_B] ** 2), {}
    for name in KERNELS:
        _, prediction = kernels.kernel_regression(
            places[~held_out_B], predictions_BxD[~held_out_B], places[held_out_B],
            isotropic=name == "isotropic",
        )  # fmt: skip
        error = np.mean((prediction - outputs) ** 2)
        errors[f"output.kernel_regression.{name}_error"] = error / blank
    return errors
