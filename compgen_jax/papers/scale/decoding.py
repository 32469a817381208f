"""S4: where networks compose, the weights of modules can be read linearly off their last layer.

Of every run there are numbers per seed: `r2` (T,) on held-out sets, and of layers, input first,
(T, L): what a linear readout, fitted on seen sets, has of the latent on held-out ones.
"""

import numpy as np

from compgen_jax.metrics.decodability import midranks
from compgen_jax.old_claims import Condition, entry
from compgen_jax.papers.scale.composing import COMPOSED

CORRELATED, SLACK = 0.5, 0.02
HALF = 0.5  # share of tasks that a network has to be right on for the theorem to ask anything much


def decodability_goes_with_success(seeds, runs: list[list[dict]]) -> dict:
    """S4a. runs: groups of one width and code, whose sets seen differ; each with `r2` (T,), `read`
    and `untrained` (T, L). The correlation is the mean over the groups, of every seed."""
    trained = _correlations(runs, lambda run: run["read"][:, -1])
    gain = _correlations(runs, lambda run: run["read"][:, -1] - run["read"][:, 0])
    untrained = _correlations(runs, lambda run: run["untrained"][:, -1])
    beyond = _correlations(runs, lambda run: run["read"][:, -1] - run["untrained"][:, -1])
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
            "that of the gain over the untrained network": Condition(beyond, "above", CORRELATED),
        },
        details={
            "of untrained networks": untrained,
            "R² of the latent from the last layer": last,
            "that of shuffled latents": shuffled,
        },
    )


def failing_networks_lose_the_latent(seeds, runs: list[dict]) -> dict:
    """S4b. Of every run `gain` (T,), below .5 where it fails, `read` and `untrained` (T, L)."""
    fails = np.stack([run["gain"] for run in runs]) < COMPOSED
    change = lambda name: np.stack([run[name][:, -1] - run[name][:, 1] for run in runs])
    lost, untrained = change("read"), change("untrained")
    of_failing, of_composing = _mean_where(lost, fails), _mean_where(lost, ~fails)
    below = lambda values: Condition(values, "below", 0.0)
    as_stated = {"R² of the latent, last - first layer": below(of_failing)}
    return _entry(
        "S4b",
        seeds,
        statement="networks that fail lose the latent with depth",
        as_stated=as_stated,
        stricter=as_stated
        | {
            "that - the untrained networks'": below(_mean_where(lost - untrained, fails)),
            "that - of networks that compose": below(of_failing - of_composing),
        },
        details={"networks that fail": fails.sum(axis=0)},
        unless="" if fails.any(axis=0).all() else "no network of some seed fails",
    )


def theorem_holds(seeds, runs: list[dict]) -> dict:
    """S4c. Of every run `right` (T,), the share of held-out tasks with R^2 of .95 or more, and
    `recovery` (T,), the share whose latent is, of all held-out ones, nearest to what is read. Only
    networks that are right on half of the tasks count: of others next to nothing is asked. Given
    too, `active_recovery`, the share whose nearest latent has the right modules, is shown."""
    right, recovery = (np.stack([run[name] for run in runs]) for name in ("right", "recovery"))
    counted, margin = right >= HALF, recovery - (1 - np.sqrt(1 - right))
    none = ~counted.any(axis=0)
    least = np.where(none, np.nan, np.where(counted, margin, np.inf).min(axis=0))
    return _entry(
        "S4c",
        seeds,
        statement="a network that is right on a share 1 - δ of tasks tells at least 1 - √δ of "
        "their latents",
        as_stated={
            "recovery - (1 - √δ), mean over networks": Condition(
                _mean_where(margin, counted), "above", -SLACK
            )
        },
        stricter={"recovery - (1 - √δ), least of any network": Condition(least, "above", -SLACK)},
        details={"networks right on half of the tasks": counted.sum(axis=0)}
        | {
            f"{name.replace('_', ' ')} of these": _mean_where(
                np.stack([run[name] for run in runs]), counted
            )
            for name in ("right", "recovery", "active_recovery")
            if name in runs[0]
        },
        unless="no network of some seed is right on half of the tasks" if none.any() else "",
    )


def _mean_where(values_RxT, counted_RxT):
    """(T,) mean over the runs that count, NaN where none does."""
    pairs = zip(values_RxT.T, counted_RxT.T, strict=True)
    return np.array([values[counted].mean() if counted.any() else np.nan
                     for values, counted in pairs])  # fmt: skip


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
    return float(np.corrcoef(midranks(a), midranks(b))[0, 1])


def _entry(claim, seeds, **fields):
    return entry(claim, "", seeds, None, figure="scale4", **fields)
