"""The command lines as a user types them: most in this process, a few in processes of their own."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from absl import flags

from compgen_jax import cli
from compgen_jax.config import Config, ConfigError
from compgen_jax.models.mlp import MLP
from compgen_jax.papers.presets import PRESETS
from compgen_jax.training import checkpoints
from tests.interrupts import interrupt

ROOT = Path(__file__).parent.parent.parent
PRESET = "launch/config.py:bump_cnn_quick"
TINY = [
    f"--config={PRESET}",
    "--config.task.grid=8",
    "--config.task.support.high=4",
    "--config.task.support.samples=96",
    "--config.model.width=4",
    "--config.model.depth=2",
    "--config.training.seeds=(0,3)",
    "--config.training.evaluate_every=20",
]


def start(module, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(module, *arguments):
    process = start(module, *arguments)
    output, errors = process.communicate(timeout=300)
    return process.returncode, output, errors


# --- what the flags say, without a process ---------------------------------------------------


class Flag:
    """The holder of --config, as absl gives it."""

    def __init__(self, value):
        self.value = value


@pytest.fixture
def read(monkeypatch):
    """read(*arguments): the Config of a command line, as a command's `main` gets it."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(cli, "_overrides", [])

    def parse(*arguments):
        found = flags.FlagValues()
        flags.DEFINE_string("config", None, "", flag_values=found)
        monkeypatch.setattr(cli.flags, "FLAGS", found)
        cli._parse(["command", *arguments])
        return cli.read_config(Flag(found.config))

    return parse


def test_a_preset_and_its_overrides(read):
    assert read(f"--config={PRESET}") == PRESETS["bump_cnn_quick"]
    config = read(*TINY)
    assert (config.task.grid, config.model.width, config.training.seeds) == (8, 4, (0, 3))
    assert config.task.support.high == 4 and config.training.evaluate_every == 20


def test_an_override_may_stand_behind_a_space_and_have_one_dash(read):
    config = read("--config", PRESET, "--config.task.grid", "8", "-config.model.width=4",
                  "--config.task.support.high", "4", "--config.name", "mine")  # fmt: skip
    assert (config.task.grid, config.model.width, config.name) == (8, 4, "mine")


def test_the_last_of_two_overrides_counts(read):
    found = read(f"--config={PRESET}", "--config.task.code.missing_coordinate", "-2.5")
    assert found.task.code.missing_coordinate == -2.5
    assert read(f"--config={PRESET}", "--config.task.grid=8", "--config.task.grid=12",
                "--config.task.support.high=4").task.grid == 12  # fmt: skip


def test_another_family_by_its_name_with_fields_of_its_own(read):
    config = read(f"--config={PRESET}", "--config.model.name=mlp", "--config.model.depth=1")
    assert config.model == MLP(depth=1, width=32)  # the preset's width
    config = read(
        f"--config={PRESET}", "--config.task.code.name=onehot", "--config.model.name=lowrank",
        "--config.model.penalty.entropy=0.5", "--config.model.rank=3",
    )  # fmt: skip
    assert (config.model.rank, config.model.penalty.entropy) == (3, 0.5)


def test_axes_of_a_sweep_on_the_command_line(read):
    config = read(
        "--config=launch/config.py:holdout_map_quick",
        "--config.sweep.axes=(('task.grid',(8,12)),('model.name',('conv','mlp')))",
    )
    assert dict(config.sweep.axes) == {"task.grid": (8, 12), "model.name": ("conv", "mlp")}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--config is missing; say --config=launch/config.py:PRESET"),
        (["--config=launch/config.py:bmp"], "unknown preset 'bmp'; presets: bump_cnn"),
        (["--config=launch/config.py"], "unknown preset ''; presets: "),
        (["--config", "launch/config.py:bmp"], "unknown preset 'bmp'"),
        (["--config.task.grid=16"], "--config.task.grid needs --config; say --config=launch"),
        (["--config=setup.cfg:bump_cnn"], "setup.cfg: is no Python file, whose name ends in .py"),
        (["--config=launch/cli.py:bump_cnn"], "launch/cli.py has no function get_config(name)"),
        (["--config=nowhere.py:bump_cnn"], "there is no file 'nowhere.py'"),
        ([TINY[0], "--config.task.gird=8"], "--config.task.gird: no such field; allowed: --"),
        ([TINY[0], "--config.model.rank=8"], "--config.model.rank: no such field; allowed"),
        ([TINY[0], "--config.task.grid", "x"], "--config.task.grid=x: invalid literal for int()"),
        ([TINY[0], "--config.task.grid=4"], "config.task.grid=4: must be at least 8 and at most"),
        ([TINY[0], "--config.model.depth=1"], "config.model.depth=1: must be at least 2"),
        ([TINY[0], "--config.model.name=cnn"], "config.model.name='cnn': must be one of conv"),
        ([TINY[0], "--config.task.name=nowhere.py:Mine"], "nowhere.py is gone: put it back"),
        ([TINY[0], "--config.training.precision=half"], "must be one of float32, bfloat16"),
    ],
)  # fmt: skip
def test_a_bad_command_line_is_one_line(read, arguments, message):
    with pytest.raises(ConfigError) as error:
        read(*arguments)
    assert message in str(error.value) and "\n" not in str(error.value).strip()


OWN = """
from compgen_jax.config import Config
from compgen_jax.models.mlp import MLP


def get_config(name="small"):
    widths = {"small": 8, "large": 64}
    return Config(name=name, decoder=MLP(width=widths[name]))
"""


def test_a_config_file_of_ones_own(read, tmp_path):
    path = tmp_path / "my configs.py"
    path.write_text(OWN)
    assert read(f"--config={path}:large") == Config(name="large", model=MLP(width=64))
    config = read(f"--config={path}", "--config.model.depth=2")
    assert config == Config(name="small", model=MLP(width=8, depth=2))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def get_config", "def get_config(", ", line 6: SyntaxError: "),
        ("import Config\n", "import Confic\n", ", line 2: ImportError: cannot import name"),
        ("name=name,", "name=1 / 0,", ", line 8: ZeroDivisionError: division by zero"),
        ("widths[name]", "widths[0]", ", line 8: KeyError: 0"),
        ("return Config", "return str", ", line 8: TypeError: "),
        ("return Config(name=name, decoder=MLP(width=widths[name]))", "return 3",
         ": get_config('small') returned int, not a Config"),
        ("width=widths[name]", "width=0", "config.model.width=0: must be at least 1"),
        ("def get_config", "def getconfig", "has no function get_config(name)"),
    ],
)  # fmt: skip
def test_a_config_file_at_fault_is_one_line_with_its_place(read, tmp_path, old, new, message):
    path = tmp_path / "mine.py"
    assert old in OWN
    path.write_text(OWN.replace(old, new, 1))
    with pytest.raises(ConfigError) as error:
        read(f"--config={path}:small")
    assert message in str(error.value) and "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_dicts_serve_as_configs(read, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text('def get_config(name=""):\n    return {"model": {"name": "mlp"}}\n')
    assert read(f"--config={path}") == Config(model=MLP())


# --- processes -------------------------------------------------------------------------------


def wait_for_checkpoint(process, workdir, after=0):
    """Until a checkpoint of a step beyond `after` is finished; returns its step."""
    deadline = time.monotonic() + 120
    while (checkpoints.latest_step(workdir / "checkpoints") or 0) <= after:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return checkpoints.latest_step(workdir / "checkpoints")


def test_killed_run_started_again_ends_with_the_same_bits(tmp_path):
    command = [*TINY, "--config.training.epochs=600"]
    code, output, _ = run("launch.train", *command, f"--workdir={tmp_path / 'whole'}")
    assert code == 0 and "exact_accuracy" in output and "summary.json" in output
    step = 0
    for delay in (0.0, 0.005):  # the kills hit a step, or the writing of the files behind it
        process = start("launch.train", *command, f"--workdir={tmp_path / 'killed'}")
        step = wait_for_checkpoint(process, tmp_path / "killed", after=step)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert not (tmp_path / "killed" / "summary.json").exists()
    code, _, errors = run("launch.train", *command, f"--workdir={tmp_path / 'killed'}")
    assert code == 0, errors
    for name in ("metrics.csv", "summary.json"):
        whole, killed = ((tmp_path / run / name).read_bytes() for run in ("whole", "killed"))
        assert whole == killed
    digests = [
        json.loads((tmp_path / run / "checkpoints" / "1800" / "record.json").read_text())["arrays"]
        for run in ("whole", "killed")
    ]
    assert digests[0] == digests[1]


def test_interrupt_ends_in_one_line_and_says_how_to_go_on(tmp_path):
    process = start(
        "launch.train", *TINY, "--config.training.epochs=100000", f"--workdir={tmp_path / 'run'}"
    )
    wait_for_checkpoint(process, tmp_path / "run")
    code, _, errors = interrupt(process)
    assert code == 130 and "Traceback" not in errors, errors
    assert errors.splitlines()[-1].startswith("error: interrupted; the same command resumes")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([TINY[0], "--config.task.grid=30"], "must be divisible by 4, not 30"),
        ([TINY[0], "--config.task.support.low=13"], "low=13, high=12: holds out no cell"),
        ([TINY[0], "--config.task.support.region=cross"], "no training point has x in"),
        ([TINY[0], "--workdri=x"], "Unknown command line flag 'workdri'"),
        ([TINY[0], "stray"], "'stray' is not a flag"),
        ([TINY[0]], "--workdir is missing"),
    ],
)
def test_a_process_with_a_bad_command_line_writes_nothing(tmp_path, arguments, message):
    workdir = [] if arguments == [TINY[0]] else [f"--workdir={tmp_path / 'run'}"]
    code, output, errors = run("launch.train", *arguments, *workdir)
    assert code == 2 and not output, errors
    assert errors.startswith("error: ") and message in errors and "Traceback" not in errors
    assert len(errors.strip().splitlines()) <= 2  # absl adds its hint about --help
    assert not (tmp_path / "run").exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("mine")
    code, _, errors = run("launch.train", TINY[0], f"--workdir={tmp_path / 'file' / 'sub'}")
    assert code == 1 and "Traceback" not in errors and "Not a directory" in errors


def test_full_coverage_trains_and_has_no_ood_numbers_and_analyze_shows_layers(tmp_path):
    """And layers that are asked for, unknown ones, and directories without a run."""
    workdir = f"--workdir={tmp_path / 'run'}"
    code, _, errors = run("launch.analyze", workdir)
    assert code == 1 and "holds no run" in errors and "Traceback" not in errors
    command = [*TINY, "--config.training.epochs=2"]
    code, output, errors = run("launch.train", *command, "--config.task.support.region=none",
                               f"--workdir={tmp_path / 'none'}")  # fmt: skip
    assert code == 0 and "OOD" in output and "mse –" in output, errors
    summary = json.loads((tmp_path / "none" / "summary.json").read_text())
    assert summary["mean"]["ood.mse"]["value"] is None and summary["mean"]["id.mse"]["value"] > 0
    run("launch.train", *command, workdir)
    code, output, errors = run("launch.analyze", workdir, "--layers=layer_01,output")
    assert code == 0, errors
    assert output.splitlines()[0].split()[-2:] == ["layer_01", "output"]
    assert (tmp_path / "run" / "analysis.json").exists()
    code, _, errors = run("launch.analyze", workdir, "--layers=layer_9")
    assert code == 2 and "--layers=layer_9: no such layer; this decoder has layer_00" in errors
