"""Scores predictions of any framework on a task; judges whether held-out cells are composed.

    compgen-jax score --template=points.npz --task=bump_cnn_quick --seed=0
    compgen-jax score predictions.npz --task=bump_cnn_quick

The first writes what to train on and what to predict, the second scores predictions as a run of
this package is scored: PREDICTIONS.json appears beside the file, or in --out. What the files hold
is in docs/how_to/score.md.
"""

from pathlib import Path

import jax
import numpy as np
import pandas
from absl import flags

from compgen_jax import claims, cli, settings
from compgen_jax.config import Config
from compgen_jax.metrics import text
from compgen_jax.runs import directory, judge_run, predictions, results
from compgen_jax.statistics import mean_with_interval, of_share
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task
from compgen_jax.training import contracts

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
    hint = f"--task={TASK.value}: is a sweep, whose trials have their own tasks"
    settings.demand(not config.is_sweep, hint)
    with settings.in_own_files(config.task):
        task = config.task.make()
        if settings.is_own(config.task):
            contracts.check_task(config.task.name, task)
    if TEMPLATE.value:
        arrays = write_template(TEMPLATE.value, config, task, SEED.value, EXAMPLES.value)
        examples = f"{len(arrays['train_points'])} training examples of seed {SEED.value}"
        held_out = f"of which {arrays['held_out'].sum()} are held out"
        print(f"{len(arrays['points'])} cells, {held_out}; {examples}")
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        print(f"wrote {TEMPLATE.value}: {shapes}")
        return
    path = Path(cli.require(PREDICTIONS))
    run = predictions.load(path, config, task)
    verdict = claims.judge(judge_run.composes, {"run": run}, {"case": run.name})
    per_seed = predictions.numbers(run)
    mean, shares = {}, judge_run.shares(task, run.cells.scores)
    printed = {"ID": {}, "OOD": {}}
    for name in next(iter(per_seed.values())):
        region, _, score = name.partition(".")
        number = mean_with_interval([numbers[name] for numbers in per_seed.values()], name)
        if score in shares:  # as claims have them
            number = of_share(number, tasks.regions(task)[region].sum())
        mean[name], printed[region.upper()][score] = number, text.with_interval(number)
    report = {
        "task": config.name,
        "seeds": per_seed,
        "mean": mean,
        "trivial": {
            name: {".".join(key): value for key, value in numbers.items()}
            for name, numbers in run.trivial.items()
        },
        "verdict": [verdict],
    }
    target = Path(OUT.value or path.parent) / f"{path.stem}.json"
    directory.write_json(target, report)
    print(f"{path}: seeds {', '.join(map(str, run.seeds))} on {config.name}")
    print("\n".join(judge_run.lines(verdict, "the held-out cells are composed")))
    print("mean over seeds")
    print(pandas.DataFrame(printed).to_string())
    print("baselines that do not compose, OOD")
    scores = dict.fromkeys(filter(None, (tasks.headline(task), task.error)))
    baselines = {
        name: {score: text.number(means.get(("ood", score))) for score in scores}
        for name, means in run.trivial.items()
    }
    print(pandas.DataFrame(baselines).T.to_string())
    print(f"wrote {target}")


def write_template(path, config: Config, task: Task, seed: int, drawn: int) -> dict:
    """Writes what predictions are made from, and returns the arrays; `drawn`: how many examples of
    a stream."""
    (examples,) = results.training_examples(config, task, (seed,), drawn)
    (points, counts, codes, truths), (cell_codes, cell_truths) = examples
    code, _ = tasks.shapes(task)
    if isinstance(code, jax.ShapeDtypeStruct):  # several inputs stay one row of numbers
        codes = codes.reshape(-1, *code.shape)
        cell_codes = cell_codes.reshape(-1, *code.shape)
    arrays = {
        "points": tasks.points(task),
        "codes": cell_codes,
        "targets": cell_truths,
        "names": np.array([factor.name for factor in task.factors]),
        "held_out": tasks.regions(task)["ood"],
        "train_points": points[counts],
        "train_codes": codes[counts],
        "train_targets": truths[counts],
    }
    directory.write_npz(Path(path), arrays)
    return arrays


if __name__ == "__main__":
    cli.run(main, positional=(PREDICTIONS,))
