"""S5 in miniature: does what can be read off a generator's layers tell which combinations it draws?

The paper's generators, text-to-image models, were not run. Here flow matching draws sprites from
shape and place (a row of the benchmark), with squares on the right held out. Its noise is one image
for each seed, and the layers are those of its first step, so they are functions of the factors.
"""

import jax
import numpy as np

from compgen_jax.claims import above, claim, learnt, note, unknown
from compgen_jax.metrics.decodability import decode, success_correlation
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.runs import measure, results


def told_and_drawn(run):
    """(2, S): Spearman's correlation over held-out combinations of how well probes read all factors
    off the last hidden layer, trained or untrained, with the share of late checkpoints that render
    the combination; NaN where a seed draws, or tells, all alike."""
    recorder, drawn = measure.recorder(run.end, "points"), run.late.cells.scores["rendered"]
    drawn_SxB = drawn if drawn.ndim == 2 else drawn.mean(axis=1)
    labels = [not factor.real for factor in recorder.task.factors]
    correlations = np.empty((2, len(run.seeds)))
    for k, (seed, key) in enumerate(zip(run.seeds, results.seed_keys(run.seeds), strict=True)):
        network = jax.tree.map(lambda leaf, k=k: leaf[k], run.params)
        last = list(recorder.record(network, key, seed).values())[-1]
        features = {"trained": last.features, "untrained": last.untrained}
        quality = decode(features, recorder.points, recorder.held_out, classes=labels).quality
        for row, values in enumerate(quality):
            correlation = success_correlation(values, drawn_SxB[k], recorder.held_out)
            correlations[row, k] = correlation["value"]
    return correlations


@claim(
    "S5",
    cases=[{"case": "flow matching of sprites"}],
    runs={"net": "league_sprites_range_flow_matching"},
)
def decodability_tells_what_is_drawn(net, beyond_untrained=False):
    """A generator fails to draw the held-out combinations whose factors are read worst off its last
    layer: {case}."""
    cells = net.late.cells
    trained, untrained = told_and_drawn(net)
    yield learnt(mean_score(cells, "rendered", ~cells.held_out), "share rendered ID")
    conditions = {"Spearman's correlation of decodability with images rendered": trained}
    if beyond_untrained:
        conditions["that, less the untrained network's"] = trained - untrained
    for name, values in conditions.items():
        if np.isnan(values).any():
            values = unknown("some seed draws, or tells, all held-out combinations alike")
        yield above(0, values, name)
    yield note("share rendered OOD", mean_score(cells, "rendered", cells.held_out))
    yield note("that of the untrained network", untrained)


decodability_tells_more_than_before_training = decodability_tells_what_is_drawn.variant(
    "S5.untrained",
    "The factors read off its last layer tell better which held-out combinations a generator fails "
    "to draw than those read off the same layer before training: {case}.",
    beyond_untrained=True,
)
