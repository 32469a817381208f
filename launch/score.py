"""Scores predictions of any framework on a task; judges whether held-out cells are composed.

    compgen-jax score --template=points.npz --task=bump_cnn_quick --seed=0
    compgen-jax score predictions.npz --task=bump_cnn_quick

The first writes what to train on and what to predict, the second scores predictions as a run of
this package is scored: PREDICTIONS.json appears beside the file, or in --out. What the files hold
is in docs/how_to/score.md.
"""

from pathlib import Path

from absl import flags

from compgen_jax import cli
from compgen_jax.runs import directory, predictions, results

PREDICTIONS = flags.DEFINE_string("predictions", None, "The file of predictions, a .npz.")
TASK = cli.define_task()
OUT = cli.define_out()
TEMPLATE = flags.DEFINE_string(
    "template", None, "Writes the cells, and the training set of --seed, to this .npz, and stops."
)
SEED = flags.DEFINE_integer("seed", 0, "Whose training set the template has.", lower_bound=0)
EXAMPLES = flags.DEFINE_integer(
    "examples",
    results.DRAWN,
    "How many examples the template has of a task that draws new ones at each step.",
    lower_bound=1,
)


def main():
    config = cli.read_config(TASK)
    task = predictions.task_of(config, f"--task={TASK.value}")
    if TEMPLATE.value:
        arrays = predictions.examples(config, task, SEED.value, EXAMPLES.value)
        directory.write_npz(Path(TEMPLATE.value), arrays)
        examples = f"{len(arrays['train_points'])} training examples of seed {SEED.value}"
        held_out = f"of which {arrays['held_out'].sum()} are held out"
        print(f"{len(arrays['points'])} cells, {held_out}; {examples}")
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        print(f"wrote {TEMPLATE.value}: {shapes}")
        return
    path = Path(cli.require(PREDICTIONS))
    scores = predictions.score(predictions.load(path, config, task))
    target = Path(OUT.value or path.parent) / f"{path.stem}.json"
    report = vars(scores) | {"verdict": [scores.verdict]}
    report.pop("decisive")
    directory.write_json(target, report)
    print(f"{path}: {scores}")
    print(f"wrote {target}")


if __name__ == "__main__":
    cli.run(main, positional=(PREDICTIONS,))
