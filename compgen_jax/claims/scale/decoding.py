"""S4: where networks compose, the weights of modules can be read linearly off their last layer.

Of every run there are numbers per seed: `r2` (T,) on held-out sets, and of layers, input first,
(T, L): what a linear readout, fitted on seen sets, has of the latent on held-out ones.
"""

import numpy as np
from scipy.stats import spearmanr

from compgen_jax.claims.scale.composing import COMPOSED
from compgen_jax.claims.verdicts import Condition, entry

CORRELATED, SLACK = 0.5, 0.02


def decodability_goes_with_success(seeds, runs: list[list[dict]]) -> dict:
    """S4a. runs: groups of one width and code, whose sets seen differ; each with `r2` (T,), `read`
    and `untrained` (T, L). The correlation is the mean over the groups, of every seed."""
    trained = _correlations(runs, lambda run: run["read"][:, -1])
    gain = _correlations(runs, lambda run: run["read"][:, -1] - run["read"][:, 0])
    untrained = _correlations(runs, lambda run: run["untrained"][:, -1])
    last = np.mean([run["read"][:, -1] for group in runs for run in group], axis=0)
    shuffled = np.mean([run["shuffled"][:, -1] for group in runs for run in group], axis=0)
    correlated = Condition(trained, "above", CORRELATED)
    return _entry(
        "S4a",
        seeds,
        statement="the better a network composes, the better its last layer tells the latent",
        as_stated={"Spearman's correlation": correlated},
        stricter={
            "Spearman's correlation": correlated,
            "that of the gain over the code itself": Condition(gain, "above", CORRELATED),
            "that beyond the untrained networks'": Condition(trained - untrained, "above", 0.0),
        },
        details={
            "of untrained networks": untrained,
            "R² of the latent from the last layer": last,
            "that of shuffled latents": shuffled,
        },
    )


def failing_networks_lose_the_latent(seeds, runs: list[dict]) -> dict:
    """S4b. Of the networks whose gain on held-out sets is below .5: `gain` (T,), `read` (T, L)."""
    lost, fails = [], 0
    for index in range(len(seeds)):
        failing = [run for run in runs if run["gain"][index] < COMPOSED]
        fails += len(failing)
        apart = [run["read"][index, -1] - run["read"][index, 1] for run in failing]
        lost.append(np.mean(apart) if apart else np.nan)
    lost = np.array(lost)
    return _entry(
        "S4b",
        seeds,
        statement="networks that fail lose the latent with depth",
        as_stated={"R² of the latent, last - first layer": Condition(lost, "below", 0.0)},
        details={"networks that fail": np.full(len(seeds), fails / len(seeds))},
        unless="" if np.isfinite(lost).all() else "no network of some seed fails",
    )


def theorem_holds(seeds, runs: list[dict]) -> dict:
    """S4c. Of every run `right` (T,), the share of held-out tasks with R^2 of .95 or more, and
    `recovery` (T,), the share whose latent is, of all held-out ones, nearest to what is read."""
    margin = np.stack(
        [run["recovery"] - (1 - np.sqrt(1 - run["right"])) for run in runs]
    )  # fmt: skip
    return _entry(
        "S4c",
        seeds,
        statement="a network that is right on a share 1 - δ of tasks tells at least 1 - √δ of "
        "their latents",
        as_stated={
            "recovery - (1 - √δ), mean over networks": Condition(
                margin.mean(axis=0), "above", -SLACK
            )
        },
        stricter={
            "recovery - (1 - √δ), least of any network": Condition(
                margin.min(axis=0), "above", -SLACK
            )
        },
    )


def _correlations(runs, of):
    """(T,) mean over groups of Spearman's correlation of success and what `of` gives, per seed."""
    found = []
    for group in runs:
        success, read = np.stack([run["r2"] for run in group]), np.stack([of(run) for run in group])
        found.append([_spearman(*pair) for pair in zip(success.T, read.T, strict=True)])
    return np.mean(found, axis=0)


def _spearman(a, b) -> float:
    """0 where one side is constant: nothing goes with it."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(spearmanr(a, b).statistic)


def _entry(claim, seeds, **fields):
    return entry(
        claim, "", seeds, np.ones(len(seeds)), figure="scale4", trained_name="networks", **fields
    )
