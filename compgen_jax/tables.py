"""The tables of a directory as pandas DataFrames, for readers: `pip install compgen_jax[pandas]`.

    metrics("runs/mine").query("seed == 0").plot(x="step", y="ood.mse")
    layers("runs/mine").pivot_table(index="metric", columns="layer", values="value")

Each raises FileNotFoundError if the directory has no such table.
"""

from pathlib import Path


def metrics(workdir):
    """`metrics.csv` of a run: a row for each seed and evaluation, a column for each score."""
    return _read(workdir, "metrics.csv")


def trials(workdir):
    """`trials.csv` of a sweep: a row for each trial, columns of its axes and scores."""
    return _read(workdir, "trials.csv")


def layers(workdir):
    """`layers.csv` of a run: seed, step, layer, metric and value (see `runs.measure`)."""
    return _read(workdir, "layers.csv")


def _read(workdir, name: str):
    import pandas

    return pandas.read_csv(Path(workdir) / name)
