"""Which study each claim is asked of, and what RESULTS.md says of the paper's verdicts."""

import numpy as np

from compgen_jax.config import Config
from compgen_jax.metrics import text
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.old_claims import exact_id
from compgen_jax.papers.forced_rendering import controls, figure1, mechanism, remedies, rotation
from compgen_jax.papers.forced_rendering import scaling as claims_of_scaling
from compgen_jax.papers.forced_rendering.runs import (
    ALONE_TITLES,
    BOTH,
    EPOCHS,
    SCALING,
    by_depth,
    select,
)
from compgen_jax.runs.judge_run import RIGHT
from figures import report
from figures.forced_rendering import authors
from figures.forced_rendering.embeddings import embedding_numbers
from figures.forced_rendering.scaling import completed
from figures.forced_rendering.stripes import stripes_of
from figures.studies import Study

NOTE = (
    "C are the paper's claims, K controls of our own. Each has two readings: as stated, and "
    "stricter, with alternatives and controls excluded. Intervals are Student's t over seeds. A "
    "verdict needs every condition on its whole interval, and says why where it is inconclusive. "
    "What a seed draws is judged by its median over five evaluations in the last tenth of "
    "training; what its layers do (C4 to C7, C12, C13) is measured at the end. "
    "docs/criteria.md has the maps on which criteria were tried, and those that were withdrawn."
)
# what the claims of Figure 1 are asked of besides, by group
ELSEWHERE = {"paper_epochs": "the paper's 50 epochs", "authors": "the authors' network"}


def all_claims(studies: list[Study], tables: dict) -> list[dict]:
    """The claims of the studies there are, in the order of the claims; `tables` has
    the rows and the config of finished sweeps by name."""
    base = next(iter(select(studies, group="bumps", code="bump", model="conv", base=True)), None)
    found = _bumps_alone(studies) + _remedies(studies, base) + _controls(studies, base)
    found += _rotations(studies)
    found += _scaling(*tables[SCALING], tables.get(EPOCHS, ())) if SCALING in tables else []
    return sorted(found, key=lambda row: row["claim"][0] + row["claim"][1:].zfill(2))  # stable


def runs_table(studies: list) -> list[str]:
    """Lines of RESULTS.md on what every decoder of bumps scores and what the authors' own did, and
    on what all other networks score."""
    summaries = {study.config.name: study.summary for study in studies}
    of_bumps = {name for name, summary in summaries.items()
                if {"id.blank_mse", "id.position_accuracy"} <= summary["mean"].keys()}  # fmt: skip
    lines = report.errors_of_images({k: v for k, v in summaries.items() if k in of_bumps})
    others = [study for study in studies if study.config.name not in of_bumps]
    return lines + authors.table(studies) + _other_errors(others)


def _other_errors(studies: list) -> list[str]:
    """Of tasks that do not ask for an image of a bump, each beside its best trivial predictor."""
    if not studies:
        return []
    return [
        "",
        "### Other tasks",
        "",
        "Exact: of an encoder, every coordinate is right; of a turned image, its angle and its "
        "error are. ±1: each coordinate is within one pixel. The best trivial predictor is the one "
        "of least error over the region, but for those that know the truth of seen combinations.",
        "",
        "| network | region | exact | ±1 pixel | MSE | MSE / best trivial predictor |",
        "|---|---|---|---|---|---|",
        *(_other_row(study, region) for study in studies for region in ("id", "ood")),
    ]


def _other_row(study, region: str) -> str:
    mean, task = study.summary["mean"], study.config.task.make()
    accuracies = (mean.get(f"{region}.{score}") for score in (task.accuracy, "position_accuracy"))
    shown = [text.with_interval(each) if each else text.UNKNOWN for each in accuracies]
    error = mean[f"{region}.{task.error}"]
    trivial = {name: mean[f"{region}.{name}_{task.error}"]["value"] for name in task.baselines}
    # what is true at a seen combination itself has no error but rounding
    least = 1e-6 * max(trivial.values())
    best = min((name for name, value in trivial.items() if value > least), key=trivial.get)
    over = f"{text.number(error['value'] / trivial[best])} ({best.replace('_', ' ')})"
    return (
        f"| {study.config.name} | {region.upper()} | {' | '.join(shown)} "
        f"| {text.with_interval(error)} | {over} |"
    )


def _bumps_alone(studies: list[Study]) -> list[dict]:
    """C1 to C7."""
    conv, mlp = (
        {study.role.code: study for study in select(studies, group="bumps", model=d, base=True)}
        for d in ("conv", "mlp")
    )
    results = {code: one.last_results for code, one in conv.items()}
    found = [figure1.fails_ood(code, one) for code, one in results.items()]
    if figure1.CONTROL in results:
        control = results[figure1.CONTROL]
        found += [figure1.succeeds_near_edge(code, one, control) for code, one in results.items()
                  if code != figure1.CONTROL]  # fmt: skip
    found += [figure1.superposes_seen(code, one) for code, one in results.items()]
    for study in select(studies, group=tuple(ELSEWHERE)):
        found += [claim(study.role.code, study.last_results, ELSEWHERE[study.role.group])
                  for claim in (figure1.fails_ood, figure1.superposes_seen)]  # fmt: skip
    both = {code: conv[code] for code in BOTH if code in conv}
    for code, one in both.items():
        ideal = mechanism.ideal(one.results)
        composer = _composer(studies, one)
        seen = code, _trained(one), one.inspection
        found += [
            mechanism.superposes(*seen, ideal),
            mechanism.resembles_binary_kernel(*seen, ideal),
            mechanism.decays_with_depth(*seen, composer),
            mechanism.distorts_volume(*seen, composer),
        ]
    if len(both) == len(BOTH):
        found.append(_of_two(mechanism.clearer_for_bump, *both.values()))
    ramps = by_depth(studies, "ramp")
    if len(ramps) > 1:
        found.append(_of_two(mechanism.shallow_ramp_is_sharper, ramps[0], ramps[-1]))
    return found + [
        _of_two(mechanism.mlp_is_opposite, one, mlp[code], code)
        for code, one in both.items()
        if code in mlp
    ]


def _composer(studies: list[Study], like: Study):
    """The inspection of the same network with as many combinations held out at random, if any that
    composes them."""
    where = {"code": like.role.code, "depth": like.role.depth}
    for study in select(studies, control=("random", "random_ramp"), **where):
        held_out = study.results.held_out
        right = mean_score(study.results, "exact_accuracy", held_out).mean()
        return study.inspection if right > RIGHT else None
    return None


def _of_two(claim, first: Study, second: Study, *code) -> dict:
    return claim(*code, _trained(first, second), first.inspection, second.inspection)


def _remedies(studies: list[Study], base: Study | None) -> list[dict]:
    """C8 to C10, C12 and C13."""
    found = []
    ablations = {study.role.ablation: study for study in select(studies, group="lowrank")}
    if set(ablations) == set(remedies.ABLATIONS):
        results = {name: study.last_results for name, study in ablations.items()}
        numbers = {name: embedding_numbers(study) for name, study in ablations.items()}
        found += remedies.penalties_on_embeddings(results, numbers)
    by_bumps = {study.role.bumps: study for study in select(studies, group="stripes")}
    few = next((n for n, study in by_bumps.items() if study.role.base), None)
    if 0 in by_bumps:
        none = by_bumps[0]
        for study in (none, *select(studies, group="stripes_alone")):
            shown = study.role.control and ALONE_TITLES[study.role.control]
            stripes = stripes_of(study.last_run)
            found.append(remedies.stripes_add_up("bump", study.last_results, stripes, shown))
        if few:
            results = {n: study.last_results for n, study in sorted(by_bumps.items())}
            stripes = stripes_of(by_bumps[few].last_run)
            found.append(remedies.few_bumps_multiply("bump", results, few, stripes))
    for with_stripes in select(studies, control="donut_stripes") if base else ():
        found.append(_of_two(remedies.volume_stays_smooth, with_stripes, base, "bump"))
    if base and few:
        pair = by_bumps[few].inspection, base.inspection
        trained = _trained(by_bumps[few])
        found.append(remedies.units_turn_from_stripes_to_bumps("bump", trained, *pair))
    return found


def _rotations(studies: list[Study]) -> list[dict]:
    """C14 and K6."""
    of = {study.role.control: study for study in select(studies, group="rotation")}
    several = of["objects"].last_results if "objects" in of else None
    found = [rotation.mixes_edges(of[""].last_results, several)] if "" in of else []
    return found + ([rotation.gap_is_rendered(several)] if several else [])


def _scaling(rows: list[dict], config: Config, epochs: tuple = ()) -> list[dict]:
    """C11, for every value of the sweep's axes beside grid, scheme and region; `epochs` has the
    rows and the config of the sweep whose trials train for as many epochs, if that is finished."""
    rows, of_epochs = completed(rows, config), completed(*epochs) if epochs else []
    regions = dict(config.sweep.axes).get(claims_of_scaling.REGION, (config.task.support.region,))
    settings = {region: claims_of_scaling.settings_of(rows, region) for region in regions}
    target, scores, found = config.sweep.search.target, config.sweep.search.scores, []
    for setting in {str(each): each for of in settings.values() for each in of}.values():
        wanted = [reading for region in regions if setting in settings[region]
                  for reading in claims_of_scaling.searched(region, target, scores)]  # fmt: skip
        found += claims_of_scaling.needs_images(
            config.task.code.name, rows, wanted, setting, of_epochs
        )
    return found


def _controls(studies: list[Study], base: Study | None) -> list[dict]:
    """K1 to K5."""
    named = {study.role.control: study for study in select(studies, group="control")}
    found = []
    if base and "wide" in named:
        found.append(controls.lit_pixels_fail(base.last_results, base.run.task.scores))
    asked = {
        "wide": controls.wide_bumps_fail,
        "random": controls.random_cells_are_composed,
        "pixelwise": controls.shared_pixels_compose,
        "donut_stripes": controls.stripes_beat_trivial_predictors,
    }
    return found + [
        claim(named[name].last_results) for name, claim in asked.items() if name in named
    ]


def _trained(*studies):
    """(T,) exact accuracy ID, of the worst network."""
    return np.min([exact_id(study.last_results) for study in studies], axis=0)


def conclude(rows: list[dict]) -> list[str]:
    """Lines of RESULTS.md on what the controls say together; none without controls."""
    rows = [row for row in rows if row["claim"] in controls.SENTENCES]
    if not rows:
        return []
    return [
        "",
        "## Composition, or the lighting of pixels?",
        "",
        "A block hold-out leaves pixels that training never lights, and a decoder whose pixels "
        "share no weights cannot learn to; stripes light them. The controls (K1 to K5) take one "
        "explanation away each.",
        "",
        f"**{controls.conclude(rows)}**",
        "",
        *(_control(row) for row in rows),
    ]


def _control(row: dict) -> str:
    reading = row["stricter"]
    name, number = next(iter(reading["conditions"].items()))
    found = f"- {row['claim']}, {reading['verdict']}: {row['statement']} "
    found += f"({name} {text.with_interval(number)}"
    within = row["details"].get("accuracy OOD within 1 pixel")
    return found + (f", within 1 pixel {text.with_interval(within)})." if within else ").")
