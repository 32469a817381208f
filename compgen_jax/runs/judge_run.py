"""Verdicts on one finished run, whatever its task.

DIR/claims.json   does it compose?, and what its task's own `claims` ask
"""

from pathlib import Path

from compgen_jax.old_claims import rows
from compgen_jax.runs import composition, decoding, directory, results


def judge_directory(workdir) -> list[dict]:
    """The claims of `claims.json`, judged and written. A task family's method `claims(results,
    inspection)`, if it has one, adds claims of its own (`claims.entry`).

    Raises RunError for a run that is not finished.
    """
    run = results.load(workdir)
    cells = run.late.cells
    mean = run.summary["mean"]
    trivial = {
        region: {
            name: mean[f"{region}.{name}_{run.task.error}"]["value"] for name in run.task.baselines
        }
        for region in ("id", "ood")
    }
    # of a seen cell the nearest seen one is itself
    trivial["id"].pop("nearest_seen", None)
    found = [composition.composes(run.config.name, cells, run.task.accuracy, trivial)]
    own = getattr(run.config.task, "claims", None)
    if own is not None:
        found += own(cells, decoding.measure_directory(workdir, progress=False))
    directory.write_json(Path(workdir) / "claims.json", rows(found))
    return found
