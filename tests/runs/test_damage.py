"""A damaged file of a half-done run ends its resumption in one line, or changes no number."""

import os
import subprocess
import sys
from pathlib import Path

# In a process of its own, as what must not come is said by threads, and at the process's end.
RESUME_FROM_DAMAGED_COPIES = r"""
import sys
from pathlib import Path

import jax
import numpy as np

from compgen_jax.config import Config, changed
from compgen_jax.runs import directory
from compgen_jax.runs.directory import RunError
from compgen_jax.training import checkpoints, loop

WORKDIR = Path(sys.argv[1])
CONFIG = changed(Config(), {"task.grid": 8, "model.width": 4, "task.support.low": 3,
                            "task.support.high": 5})
TEMPLATE = loop.template(CONFIG)
ROWS = [{"step": step, "ood.mse": step / 7} for step in range(60)]


DAMAGES = {
    "flipped": lambda c: c[: len(c) // 2] + bytes([c[len(c) // 2] ^ 1]) + c[len(c) // 2 + 1 :],
    "cut": lambda c: c[: len(c) // 2],
    "gone": None,
}


def outcome():
    try:
        with directory.claim(WORKDIR, CONFIG):
            checkpoint = checkpoints.restore(WORKDIR / "checkpoints", 10, TEMPLATE)
    except RunError as error:
        return str(error)
    assert checkpoint.step == 10 and checkpoint.rows == ROWS
    jax.tree.map(np.testing.assert_array_equal, checkpoint.state, expected)
    return "intact"


rng = np.random.default_rng(0)
expected = jax.tree.map(lambda x: rng.integers(0, 99, x.shape).astype(x.dtype), TEMPLATE)
with directory.claim(WORKDIR, CONFIG):
    directory.begin(WORKDIR, CONFIG, {})
    directory.save(WORKDIR, 10, expected, ROWS)
for path in sorted(path for path in WORKDIR.rglob("[!.]*") if path.is_file()):
    content = path.read_bytes()
    for how, damage in DAMAGES.items():
        path.unlink() if damage is None else path.write_bytes(damage(content))
        print(how, path.relative_to(WORKDIR).as_posix(), outcome(), sep="\t")
        path.write_bytes(content)
assert outcome() == "intact"
"""


def output_of(script, *arguments, environment=os.environ):
    """What a process that runs this script prints, with no word of errors."""
    process = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=Path(__file__).parents[2],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert process.returncode == 0 and process.stderr == "", process.stderr
    return process.stdout


def test_damage_ends_in_one_line_or_changes_nothing_whichever_file_it_hits(tmp_path):
    output = output_of(RESUME_FROM_DAMAGED_COPIES, str(tmp_path))
    lines = [line.split("\t") for line in output.splitlines()]
    assert len(lines) >= 3 * 7
    for _, path, outcome in lines:  # an outcome of two lines would not have three parts
        if path in ("metrics.csv", "train.log"):
            assert outcome == "intact"
        elif path == "config.json":
            assert outcome != "intact"
        else:  # a damaged list may blame another file
            name = path.removeprefix("checkpoints/10/").replace("files.json", "")
            assert f"checkpoints/10 is damaged ({name}" in outcome
