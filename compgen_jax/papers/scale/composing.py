"""S1 and S2: do more sets of modules, wider students, any code and any support lead to composition?

Of every run there are numbers per seed by name, (T,): `id.r2`, pooled R^2 on seen sets, `ood.r2` on
held-out ones, and `id.gain` and `ood.gain`, 1 - error / that of the best map that is bilinear in
latent and input. R^2 alone misleads: that map composes nothing and has .85. So the stricter
readings judge gains.
"""

import numpy as np

from compgen_jax.old_claims import Condition, entry

GATE, GATE_OF_CODES = 0.95, 0.9  # ID R^2 below which a student has not learnt what it was shown
AFFINE = 0.9  # R^2 of an affine map from code to latent, from which a code is called affine
RISE, COMPOSED, APART = 0.1, 0.5, 0.05
# supports that do not cover the space of tasks, and those that do
UNCOVERED, COVERED = ("disconnected", "non_compositional", "unpopular"), ("popular", "equal")


def more_sets_help(seeds, few: dict, many: dict, seen: tuple) -> dict:
    """S1a. few, many: the numbers of the runs with so many sets `seen`, at the same width."""
    rise = lambda name: many[f"ood.{name}"] - few[f"ood.{name}"]
    shown = f"{seen[1]} - at {seen[0]} sets seen"
    return _entry(
        "S1a",
        "data",
        seeds,
        many["id.r2"],
        statement="more sets of modules seen raise R² on held-out ones",
        as_stated={f"R² OOD at {shown}": Condition(rise("r2"), "above", RISE)},
        stricter={
            f"gain OOD at {shown}": Condition(rise("gain"), "above", RISE),
            f"gain OOD at {seen[1]} sets": Condition(many["ood.gain"], "above", COMPOSED),
        },
        details={f"R² OOD at {seen[0]} sets": few["ood.r2"], "R² OOD at the most": many["ood.r2"]},
    )


def wider_students_help(seeds, widths, runs: list[dict]) -> dict:
    """S1b. runs: the numbers of the run of each width, with as many sets seen."""
    doublings = np.log2(widths)
    slope = lambda name: least_squares_slope(
        doublings, np.stack([run[f"ood.{name}"] for run in runs])
    )
    composed = Condition(runs[-1]["ood.gain"], "above", COMPOSED)
    at_widest = f"gain OOD at width {widths[-1]}"
    return _entry(
        "S1b",
        "width",
        seeds,
        runs[-1]["id.r2"],
        statement="wider students compose better",
        as_stated={
            "slope of R² OOD per doubling of width": Condition(slope("r2"), "above", 0.0),
            at_widest: composed,
        },
        stricter={
            "slope of gain OOD per doubling of width": Condition(slope("gain"), "above", 0.0),
            f"gain OOD at width {widths[-1]} - at {widths[-2]}": Condition(
                runs[-1]["ood.gain"] - runs[-2]["ood.gain"], "above", 0.0
            ),
            at_widest: composed,
        },
        details={
            f"R² OOD at width {width}": run["ood.r2"]
            for width, run in zip(widths, runs, strict=True)
        },
    )


def code_is_composed(seeds, code: str, run: dict, code_r2: float) -> dict:
    """S2a, of one code."""
    kind = "affine" if code_r2 >= AFFINE else "not affine"
    gain = {"gain OOD": Condition(run["ood.gain"], "above", COMPOSED)}
    error = Condition(run["ood.mse"] / run["id.mse"], "below", 2.0, ratio=True)
    return _entry(
        "S2a",
        f"{code.replace('_', ' ')} ({kind})",
        seeds,
        run["id.r2"],
        gate=GATE_OF_CODES,
        statement="held-out sets are composed from another code than the latent itself",
        as_stated=gain,
        stricter=gain | {"error OOD / ID": error},
        details={
            "R² OOD": run["ood.r2"],
            "gain ID": run["id.gain"],
            "R² of the latent from the code": np.full(len(run["id.r2"]), code_r2),
        },
    )


def support_matters(seeds, support: str, random: dict, run: dict) -> dict:
    """S2b, of one support beside sets at random, as many seen of both."""
    covered = support in COVERED
    side, says = ("below", "as well as") if covered else ("above", "less than")
    kind = "covers" if covered else "leaves out, or barely shows, part of"
    apart = lambda name: Condition(random[f"ood.{name}"] - run[f"ood.{name}"], side, APART)
    composed = {
        f"gain OOD {support if covered else 'random'}": Condition(
            (run if covered else random)["ood.gain"], "above", COMPOSED
        )
    }
    return _entry(
        "S2b",
        support.replace("_", " "),
        seeds,
        np.minimum(random["id.r2"], run["id.r2"]),
        statement=f"a support that {kind} the space of tasks is composed {says} sets at random",
        as_stated={f"R² OOD random - {support}": apart("r2")} | composed,
        stricter={f"gain OOD random - {support}": apart("gain")} | composed,
        details={"R² OOD": run["ood.r2"], "gain OOD": run["ood.gain"]},
    )


def sets_needed(seeds, modules, sets, needed_TxM, seen_most: dict) -> dict:
    """S1c. needed: of every seed and number of modules, how many seen sets give the gain .5, as of
    `needed_for`; sets: how many there are of each."""
    exponent = least_squares_slope(np.log(sets), np.log(bracketed(needed_TxM).T))
    return _entry(
        "S1c",
        "tasks needed",
        seeds,
        seen_most["id.r2"],
        statement="the seen sets that are needed grow more slowly than all sets",
        as_stated={
            f"exponent over {', '.join(map(str, modules))} modules": Condition(
                exponent, "below", 1.0
            )
        },
        unless=unless_bracketed(needed_TxM, "the fewest sets"),
    )


def transformer_needs_fewer(seeds, needed_mlp_T, needed_transformer_T, runs: list[dict]) -> dict:
    """S1d. Sets that each needs for the gain .5, of as many parameters."""
    return _entry(
        "S1d",
        "architecture",
        seeds,
        np.minimum(*(run["id.r2"] for run in runs)),
        statement="a transformer needs fewer sets than an MLP of as many parameters",
        as_stated={
            "sets needed, transformer / MLP": Condition(
                np.divide(*bracketed([needed_transformer_T, needed_mlp_T])),
                "below",
                1.0,
                ratio=True,
            )
        },
        unless=unless_bracketed([needed_mlp_T, needed_transformer_T], "the fewest sets"),
    )


def needed_for(sets_K, gains_KxT, target: float = COMPOSED):
    """(T,): how many seen sets give the gain, between the last below it and the next, linear in
    their logarithm; 0 where all do, so that fewer might, and NaN where the most do not."""
    order = np.argsort(sets_K)
    logs, gains = np.log(np.asarray(sets_K, float)[order]), np.asarray(gains_KxT)[order]
    found = []
    for values in gains.T:
        below = np.flatnonzero(values < target)
        if not len(below):
            found.append(0.0)
        elif below[-1] == len(values) - 1:
            found.append(np.nan)
        else:
            k = below[-1]
            share = (target - values[k]) / (values[k + 1] - values[k])
            found.append(np.exp(logs[k] + share * (logs[k + 1] - logs[k])))
    return np.array(found)


def bracketed(needed):
    """What `needed_for` gives, NaN where it is no number but a bound."""
    return np.where(np.asarray(needed) > 0, needed, np.nan)


def unless_bracketed(needed, least: str) -> str:
    """Why nothing is concluded from what `needed_for` gives; '' where all of it are numbers."""
    needed = np.asarray(needed)
    missing, all_do = int(np.isnan(needed).sum()), int((needed == 0).sum())
    reasons = [f"not reached in {missing} of {needed.size}"] * (missing > 0)
    reasons += [f"reached with {least} in {all_do} of {needed.size}"] * (all_do > 0)
    return ", ".join(reasons)


def least_squares_slope(x_K, values_KxT):
    """(T,) least squares."""
    centred = x_K - np.mean(x_K)
    return centred @ values_KxT / np.sum(centred**2)


def _entry(claim, code, seeds, id_r2, *, gate=GATE, **fields):
    named = {"figure": f"scale{claim[1]}", "trained_name": "R² ID", "trained_at": gate}
    return entry(claim, code, seeds, id_r2, **named, **fields)
