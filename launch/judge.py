"""Judges finished runs: the verdict of every claim whose runs are in the directories.

    compgen-jax judge runs/first runs/second

A directory is a run, or holds runs; a run is known by its config, whatever its directory is called.
A single run is asked, too, whether it composes what was held out, whatever its task; that verdict
is also written to its claims.json.
"""

from absl import flags

from compgen_jax import api, cli
from compgen_jax.metrics import text
from compgen_jax.runs import judge_run
from compgen_jax.settings import demand

FOLDERS = flags.DEFINE_list("workdirs", [], "Directories of runs; may stand alone.")
cli.define_trust()


def main():
    demand(FOLDERS.value, "name one directory or more: compgen-jax judge DIR ...")
    rows, lacking = api.judge_folders(FOLDERS.value)
    for row in rows:
        name = ", ".join(filter(None, (row["claim"], row["case"], row["scale"])))
        print("\n".join(judge_run.lines(row, f"{name}: {row['statement']}")))
        if row["claim"] == judge_run.composes.name:
            notes = row["notes"].items()
            print(*(f"  {name}: {text.with_interval(number)}" for name, number in notes), sep="\n")
    for (claim, case), names in lacking.items():
        print(f"{claim}, {case}: not run; lacks {', '.join(names)}")


if __name__ == "__main__":
    cli.run(main, (FOLDERS,))
