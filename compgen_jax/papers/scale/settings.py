"""The settings of the hyperteacher that the paper leaves open, each changed alone (quick scale).

A teacher is drawn by `task.seed`, a split by `task.support.seed`, and a training run by its own
seeds, so each can change alone. Both groups take about 20 minutes on 2 cores.
"""

from compgen_jax.papers.scale.codes import COVERED, UNCOVERED
from compgen_jax.papers.settings import Group, times, to

TEACHERS_AND_SPLITS = (
    to("teacher 1", task__seed=1),
    to("teacher 2", task__seed=2),
    to("split 1", task__support__seed=1),
    to("split 2", task__support__seed=2),
)
# S1a: more sets help.
HYPERTEACHER = Group(
    ("modules_8_seen_9_width_256", "modules_8_seen_69_width_256"),
    (
        *TEACHERS_AND_SPLITS,
        times("training.learning_rate", 3),
        times("model.width", 0.5),
    ),
)
# S2b: supports against as many sets at random.
_RANDOM = "modules_8_seen_44_width_256"
SUPPORTS = Group(
    (_RANDOM, *(f"{_RANDOM}_{support}" for support in (*UNCOVERED, *COVERED))), TEACHERS_AND_SPLITS
)
GROUPS = HYPERTEACHER, SUPPORTS
