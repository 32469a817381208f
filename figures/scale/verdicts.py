"""Which study each claim of the second paper is asked of, and what RESULTS.md says of it."""

import functools

import numpy as np

from compgen_jax.metrics import text
from compgen_jax.papers.scale import composing, constructions, decoding, neurons
from compgen_jax.papers.scale.composing import COMPOSED, COVERED, UNCOVERED
from compgen_jax.papers.scale.runs import Role, numbers, select
from figures import report

NOTE = (
    "S are claims of the paper on scale. R² is pooled, around the outputs' means over all tasks; "
    "gain is 1 - error / that of the best map that is bilinear in latent and input, which composes "
    "nothing and has an R² of .85 to .88 at 8 and 16 modules: so stricter readings judge gains. "
    "Intervals are Student's t over training seeds, of one teacher and one draw of the sets."
)
NAMES = ("r2", "gain", "mse")
RUNS = (
    "| run | region | R² | gain | task R² ≥ .95 | R² of: bilinear | sum of singles | nearest seen |"
)
PREDICTORS = ("bilinear", "sum_of_singles", "nearest_seen")


def all_claims(studies: list, tables: dict) -> list[dict]:
    """The claims of the studies there are."""
    asked = _sets_and_widths, _sets_needed, _codes_and_supports, _neurons, _decodability
    return [row for ask in asked for row in ask(studies)]


def of_run(study) -> dict:
    """A run's numbers per seed, as `claims.scale.composing` asks for them."""
    return {
        f"{region}.{name}": numbers([study], f"{region}.{name}")[0]
        for region in ("id", "ood")
        for name in NAMES
    }


def baseline(study, predictor: str, region: str = "ood") -> float:
    """R² of a trivial predictor."""
    means = study.summary["mean"]
    error = means[f"{region}.{predictor}_mse"]["value"]
    return 1 - error / means[f"{region}.variance"]["value"]


def _seeds(study):
    return tuple(study.config.training.seeds)


def _sets_and_widths(studies) -> list[dict]:
    """S1a and S1b."""
    found = select(studies, "seen")
    seen = sorted({study.role.seen for study in found})
    widths = sorted({study.role.width for study in found})
    if len(seen) < 2 or len(widths) < 2 or len(found) < len(seen) * len(widths):
        return []
    at = {(study.role.seen, study.role.width): of_run(study) for study in found}
    few, many = at[seen[0], widths[-1]], at[seen[-1], widths[-1]]
    return [
        composing.more_sets_help(_seeds(found[0]), few, many, (seen[0], seen[-1])),
        composing.wider_students_help(_seeds(found[0]), widths, [at[seen[-1], w] for w in widths]),
    ]


def _sets_needed(studies) -> list[dict]:
    """S1c, and S1d where transformers were trained too."""
    by_decoder = {}
    for study in select(studies, "needed"):
        of_modules = by_decoder.setdefault(study.role.model, {})
        of_modules.setdefault(study.role.modules, []).append(study)
    needed = {
        model: {m: _needed(own) for m, own in of_modules.items() if len(own) > 1}
        for model, of_modules in by_decoder.items()
    }
    mlps, others = needed.get("task_mlp", {}), needed.get("task_transformer", {})
    found, widest = [], by_decoder.get("task_mlp", {})
    if len(mlps) > 1:
        modules = sorted(mlps)
        most = [max(widest[m], key=lambda study: study.role.seen) for m in modules]
        sets = [study.summary["task"]["sets"] for study in most]
        id_r2 = numbers(most, "id.r2").min(axis=0)
        table = np.stack([mlps[m] for m in modules], axis=1)
        most_seen = {"id.r2": id_r2}
        found.append(composing.sets_needed(_seeds(most[0]), modules, sets, table, most_seen))
    for m in sorted(set(mlps) & set(others))[-1:]:
        most = [max(by_decoder[d][m], key=lambda study: study.role.seen) for d in by_decoder]
        found.append(
            composing.transformer_needs_fewer(
                _seeds(most[0]), mlps[m], others[m], [of_run(study) for study in most]
            )
        )
    return found


def _needed(studies):
    """(T,) sets that give the gain .5."""
    return composing.needed_for([s.role.seen for s in studies], numbers(studies, "ood.gain"))


def _codes_and_supports(studies) -> list[dict]:
    """S2a and S2b."""
    rows = [
        composing.code_is_composed(
            _seeds(study), study.role.code, of_run(study), study.summary["task"]["code_r2"]
        )
        for study in select(studies, "code")
        if study.role.code != "identity"
    ]
    random = select(studies, "support", support="random")
    for support in (*UNCOVERED, *COVERED) if random else ():
        for study in select(studies, "support", support=support):
            rows.append(
                composing.support_matters(_seeds(study), support, of_run(random[0]), of_run(study))
            )
    return rows


@functools.cache
def tables_of_neurons():
    """Rows of the constructions: k-hot; graded, on a common interval; graded, on the teacher's."""
    exact = constructions.table_k_hot(neurons.MODULES, neurons.SEEDS)
    of_graded = [
        constructions.table_graded(seeds=neurons.SEEDS, common=common) for common in (True, False)
    ]
    return exact, *of_graded


def trained_by_modules(studies) -> dict:
    """{modules: {width: study}}, all at the same share of sets seen."""
    most = max((study.role.seen for study in select(studies, "seen")), default=0)
    found = {}
    for study in [*select(studies, "modules"), *select(studies, "seen", seen=most)]:
        found.setdefault(study.role.modules, {})[study.role.width] = study
    return found


def _neurons(studies) -> list[dict]:
    """S3; what is written down is judged beside any student."""
    if not any(isinstance(study.role, Role) for study in studies):
        return []
    exact, graded, own = tables_of_neurons()
    rows = [neurons.k_hot_is_exact(exact), neurons.graded_needs_no_more(graded, own)]
    by_modules = trained_by_modules(studies)
    of_each = [set(own) for own in by_modules.values()]
    widths = sorted(set.intersection(*of_each)) if of_each else []
    if len(by_modules) > 1 and len(widths) > 1:
        modules = sorted(by_modules)
        r2 = [numbers([by_modules[m][w] for w in widths], "ood.r2") for m in modules]
        widest = [by_modules[m][widths[-1]] for m in modules]
        seeds = _seeds(widest[0])
        rows.append(
            neurons.width_grows_slowly(
                seeds, modules, widths, np.array(r2), numbers(widest, "id.r2").min(axis=0)
            )
        )
    return rows


def decoded_groups(studies) -> list[list[dict]]:
    """By width, what `claims.scale.decoding` asks of every run that differs in its sets seen."""
    found = {}
    for study in select(studies, "seen"):
        layers, outputs = study.run.layers, study.run.outputs
        found.setdefault(study.role.width, []).append(
            {
                "width": study.role.width,
                "r2": numbers([study], "ood.r2")[0],
                "gain": numbers([study], "ood.gain")[0],
                "right": numbers([study], "ood.task_accuracy")[0],
                "recovery": outputs("decode.recovery"),
                "active_recovery": outputs("decode.active_recovery"),
                "read": layers("decode.ood_r2"),
                "untrained": layers("decode.untrained.ood_r2"),
                "shuffled": layers("decode.shuffled.ood_r2"),
            }
        )
    return list(found.values())


def fails(run: dict) -> bool:
    """Whether a run's mean gain on held-out sets is below the criterion."""
    return run["gain"].mean() < COMPOSED


def _decodability(studies) -> list[dict]:
    """S4."""
    groups = decoded_groups(studies)
    if not groups or min(map(len, groups)) < 3:
        return []
    seeds, runs = _seeds(select(studies, "seen")[0]), [run for group in groups for run in group]
    return [
        decoding.decodability_goes_with_success(seeds, groups),
        decoding.failing_networks_lose_the_latent(seeds, runs),
        decoding.theorem_holds(seeds, runs),
    ]


def runs_table(studies: list) -> list[str]:
    """Lines of RESULTS.md: what every run of modules scores, beside trivial predictors."""
    found = [study for study in studies if hasattr(study.role, "groups")]
    decoders = [study for study in studies if study not in found]  # of images
    images = report.errors_of_images({study.config.name: study.summary for study in decoders})
    return _students(found) + [""] * bool(found and decoders) + images


def _students(studies: list) -> list[str]:
    if not studies:
        return []
    lines = [
        "Students of modules: pooled R² and gain (see below); the share of tasks with an R² of "
        ".95 or more; R² of trivial predictors.",
        "",
        RUNS,
        "|---" * 8 + "|",
    ]
    for study in studies:
        mean = study.summary["mean"]
        for region in ("id", "ood"):
            shown = [text.with_interval(mean[f"{region}.{name}"])
                     for name in ("r2", "gain", "task_accuracy")]  # fmt: skip
            trivial = [
                "–" if (region, name) == ("id", "nearest_seen")
                else text.number(baseline(study, name, region)) for name in PREDICTORS
            ]  # fmt: skip
            lines.append(f"| {study.config.name} | {region.upper()} | {' | '.join(shown)} "
                         f"| {' | '.join(trivial)} |")  # fmt: skip
    return lines
