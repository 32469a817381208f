"""Metrics along training: at every step whose parameters a run keeps, of its last two layers.

DIR/along.json  the numbers that were asked for so far
"""

import numpy as np

from compgen_jax.metrics.registry import LAYER_METRICS, OUTPUT_METRICS
from compgen_jax.runs import directory, measure
from compgen_jax.runs.run import Run

LAYERS = 2  # the last hidden layer and the prediction


def along_training(run: Run, names, progress: bool = True) -> dict:
    """{metric: {layer: (T, K)}} at the K kept steps, from `DIR/along.json` or measured now.

    `names` are registered metrics of the grid with fixed names. A metric of the prediction has the
    layer `output` alone. Raises RunError and ValueError as `measure.measure`.
    """
    path, steps = run.path / "along.json", run.kept_steps
    version = [measure.VERSION, *steps]
    known = directory.read_cache(path, version, lambda saved: saved["numbers"]) or {}
    missing = set(names) - known.keys()
    if missing:
        metrics = [one for one in (*LAYER_METRICS, *OUTPUT_METRICS) if missing & {*one.fixed_names}]
        table = measure.measure(run, metrics, steps, LAYERS, progress).table
        for name in {name for name, _ in table}:
            layers = table[name, steps[0]]
            known[name] = {
                layer: np.stack([table[name, step][layer] for step in steps], axis=1).tolist()
                for layer in layers
            }
        directory.write_json(path, {"version": version, "numbers": known})
    return {
        name: {layer: np.array(values, float) for layer, values in known[name].items()}
        for name in names
    }
