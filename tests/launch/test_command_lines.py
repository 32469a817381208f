"""The command lines as a user types them: most in this process, a few in processes of their own."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from absl import flags

from compgen_jax import __version__, cli, settings
from compgen_jax.config import Config, ConfigError, changed
from compgen_jax.models.mlp import MLP
from compgen_jax.papers.presets import PRESETS
from compgen_jax.runs import experiment
from compgen_jax.runs.directory import RunError
from compgen_jax.training import checkpoints
from launch import analyze, train
from tests.command import call
from tests.interrupts import interrupt

ROOT = Path(__file__).parent.parent.parent
TINY = [
    "--config=bump_cnn_quick",
    "--config.task.grid=8",
    "--config.task.support.high=4",
    "--config.task.support.samples=96",
    "--config.model.width=4",
    "--config.model.depth=2",
    "--config.training.seeds=(0,3)",
    "--config.training.evaluate_every=20",
]


# --- what the flags say ----------------------------------------------------------------------


@pytest.fixture
def read(monkeypatch, tmp_path):
    """read(*arguments): the Config of a command line, as `main` gets it, in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def parse(*arguments):
        values = flags.FlagValues()
        holder = flags.DEFINE_string("config", None, "", flag_values=values)
        monkeypatch.setattr(cli.flags, "FLAGS", values)
        cli._parse(["command", *arguments])
        return cli.read_config(holder)

    return parse


def test_a_preset_by_its_name_from_anywhere_and_by_its_file(read, monkeypatch):
    assert read("--config=bump_cnn_quick") == PRESETS["bump_cnn_quick"]
    assert read("--config=launch/config.py:bump_cnn_quick") == PRESETS["bump_cnn_quick"]
    monkeypatch.chdir(ROOT)
    assert read("--config=launch/config.py:bump_cnn_quick") == PRESETS["bump_cnn_quick"]


def test_overrides_by_type_with_spaces_or_one_dash_and_the_last_counts(read):
    config = read(*TINY)
    assert (config.task.grid, config.model.width, config.training.seeds) == (8, 4, (0, 3))
    config = read("--config", "bump_cnn_quick", "--config.task.grid", "8", "-config.model.width=4",
                  "--config.task.support.high", "4", "--config.task.grid=12",
                  "--config.task.code.missing_coordinate", "-2.5")  # fmt: skip
    assert (config.task.grid, config.model.width) == (12, 4)
    assert config.task.code.missing_coordinate == -2.5
    axes = "(('task.grid',(8,12)),('model.name',('conv','mlp')))"
    config = read("--config=holdout_map_quick", f"--config.sweep.axes={axes}")
    assert dict(config.sweep.axes) == {"task.grid": (8, 12), "model.name": ("conv", "mlp")}


def test_a_flag_file_carries_overrides_and_what_comes_later_counts(read, tmp_path):
    inner, outer = tmp_path / "inner.txt", tmp_path / "flags.txt"
    inner.write_text("--config.task.grid=12\n--config.training.epochs=3\n")
    lines = ["# mine", TINY[0], "", f"--flagfile={inner}", "--config.name=two words"]
    outer.write_text("\n".join(lines))
    config = read("--config.model.width", "4", f"--flagfile={outer}", "--config.training.epochs=5")
    assert (config.task.grid, config.training.epochs, config.model.width) == (12, 5, 4)
    assert config.name == "two words"


def test_another_family_by_its_name_with_fields_of_its_own(read):
    config = read(TINY[0], "--config.model.name=mlp", "--config.model.depth=1")
    assert config.model == MLP(depth=1, width=32)  # the preset's width
    config = read(
        TINY[0], "--config.task.code.name=onehot", "--config.model.name=lowrank",
        "--config.model.penalty.entropy=0.5", "--config.model.rank=3",
    )  # fmt: skip
    assert (config.model.rank, config.model.penalty.entropy) == (3, 0.5)


OWN = """
from compgen_jax.config import Config
from compgen_jax.models.mlp import MLP


def get_config(name="small"):
    widths = {"small": 8, "large": 64}
    return Config(name=name, model=MLP(width=widths[name]))
"""


def test_a_config_file_of_ones_own(read, tmp_path):
    path = tmp_path / "my configs.py"
    path.write_text(OWN)
    assert read(f"--config={path}:large") == Config(name="large", model=MLP(width=64))
    config = read("--config=my configs.py", "--config.model.depth=2")
    assert config == Config(name="small", model=MLP(width=8, depth=2))
    path = tmp_path / "dicts.py"
    path.write_text('def get_config(name=""):\n    return {"model": {"name": "mlp"}}\n')
    assert read(f"--config={path}") == Config(model=MLP())


def error_of(read, *arguments) -> str:
    with pytest.raises(ConfigError) as error:
        read(*arguments)
    assert "\n" not in str(error.value).strip()
    return str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--config is missing; give a preset's name, or FILE.py:NAME of your own"),
        (["--config.task.grid=16"], "--config.task.grid needs --config; give a preset"),
        (["--config=bump_cn"], "--config=bump_cn: no preset 'bump_cn'; close are bump_cnn, "),
        (["--config=launch/config.py:bump_cn"], "no preset 'bump_cn'; close are bump_cnn, "),
        (["--config=launch/config.py"], "no preset ''; without --config all are listed"),
        (["--config=flags.cfg:bump_cnn"], "--config=flags.cfg:bump_cnn: there is no file 'flags"),
        (["--config=nowhere.py:bump_cnn"], "there is no file 'nowhere.py'"),
        ([f"--config={ROOT}/setup.cfg:bump_cnn"], "setup.cfg: is not a Python file"),
        ([f"--config={ROOT}/compgen_jax/cli.py:x"], "has no function get_config(name)"),
        ([TINY[0], "--config.task.gird=8"], "--config.task.gird: no such field; allowed: --"),
        ([TINY[0], "--config.model.rank=8"], "--config.model.rank: no such field; allowed"),
        ([TINY[0], "--config.task.grid", "x"], "--config.task.grid=x: invalid literal for int()"),
        ([TINY[0], "--config.task.grid=4"], "config.task.grid=4: must be at least 8 and at most"),
        ([TINY[0], "--config.model.name=cnn"], "config.model.name='cnn': must be one of conv"),
        ([TINY[0], "--config.task.name=nowhere.py:Mine"], "there is no file nowhere.py"),
        ([TINY[0], "--config.training.precision=half"], "must be one of float32, bfloat16"),
    ],
)  # fmt: skip
def test_a_bad_config_is_one_line(read, arguments, message):
    assert message in error_of(read, *arguments)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def get_config", "def get_config(", ", line 6: SyntaxError: "),
        ("import Config\n", "import Confic\n", ", line 2: ImportError: cannot import name"),
        ("name=name,", "name=1 / 0,", ", line 8: ZeroDivisionError: division by zero"),
        ("widths[name]", "widths[0]", ", line 8: KeyError: 0"),
        ("return Config", "return str", ", line 8: TypeError: "),
        ("return Config(name=name, model=MLP(width=widths[name]))", "return 3",
         ": get_config('small') returned int, not a Config"),
        ("width=widths[name]", "width=0", "config.model.width=0: must be at least 1"),
        ("def get_config", "def getconfig", "has no function get_config(name)"),
    ],
)  # fmt: skip
def test_a_config_file_at_fault_is_one_line_with_its_place(read, tmp_path, old, new, message):
    path = tmp_path / "mine.py"
    assert old in OWN
    path.write_text(OWN.replace(old, new, 1))
    text = error_of(read, f"--config={path}:small")
    assert message in text and str(path) in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workdri=x"], "Unknown command line flag 'workdri'"),
        (["stray"], "'stray' is not a flag"),
        (["--flagfile=nowhere.txt"], "Unable to open flagfile"),
    ],
)
def test_a_bad_flag_is_one_line(read, capsys, arguments, message):
    with pytest.raises(SystemExit) as stop:
        read(TINY[0], *arguments)
    errors = capsys.readouterr().err
    assert stop.value.code == cli.USAGE_ERROR and len(errors.splitlines()) == 1
    assert errors.startswith("error: ") and message in errors


def test_a_missing_config_lists_the_presets_by_paper(read, capsys):
    with pytest.raises(ConfigError) as error:
        read()
    with pytest.raises(SystemExit):
        cli._stop(error.value, 2)
    first, *others = capsys.readouterr().err.splitlines()
    assert first.startswith("error: --config is missing")
    listed = " ".join(others)
    assert listed.startswith("presets:   Forced rendering: ") and "  Scale: " in listed
    assert set(PRESETS) <= set(listed.replace(",", " ").split())


def test_jaxs_warnings_are_shown_once_and_no_others(capsys, monkeypatch):
    logger = logging.getLogger("jax")
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "propagate", True)
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler()])
    cli.show_only_warnings_of_jax()
    for name in ("jax._src.xla_bridge", "jax._src.xla_bridge", "orbax", "asyncio", "fontTools"):
        logging.getLogger(name).error("Falling back to %s.", "cpu")
    assert capsys.readouterr().err == "warning: Falling back to cpu.\n"


# --- commands in this process ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config.task.grid=30"], "must be divisible by 4, not 30"),
        (["--config.task.support.low=13"], "low=13, high=12: holds out no cell"),
        (["--config.task.support.region=cross"], "must be one of donut, corner, random, none"),
        (["--workdir="], "--workdir is missing"),
    ],
)
def test_a_config_that_cannot_be_trained_is_one_line_and_writes_nothing(
    tmp_path, arguments, message
):
    with pytest.raises(ConfigError) as error:
        call(train, TINY[0], f"--workdir={tmp_path / 'run'}", *arguments)
    assert message in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_train_prints_scores_and_analyze_prints_layers(tmp_path, capsys):
    command = [*TINY, "--config.training.epochs=2", "--config.model.name=mlp",
               "--config.model.depth=1"]  # fmt: skip
    call(train, *command, "--config.task.support.region=none", f"--workdir={tmp_path / 'none'}")
    output = capsys.readouterr().out
    assert "OOD" in output and "mse –" in output  # as nothing is held out
    mean = json.loads((tmp_path / "none" / "summary.json").read_text())["mean"]
    assert mean["ood.mse"]["value"] is None and mean["id.mse"]["value"] > 0
    workdir = f"--workdir={tmp_path / 'run'}"
    with pytest.raises(RunError, match="there is no such directory"):
        call(analyze, workdir)
    call(train, *command, workdir)
    capsys.readouterr()
    call(analyze, workdir, "--layers=layer_01,output")
    assert capsys.readouterr().out.splitlines()[0].split()[-2:] == ["layer_01", "output"]
    assert (tmp_path / "run" / "analysis.json").exists()
    with pytest.raises(ConfigError, match="--layers=layer_9: no such layer; .* has layer_00"):
        call(analyze, workdir, "--layers=layer_9")


def test_a_run_directory_of_the_first_release_is_refused_in_one_line(tmp_path):
    (tmp_path / "config.json").write_text('{"name": "old", "decoder": {"name": "conv"}}')
    with pytest.raises(RunError, match="config.json cannot be used: .*compgen_jax 0.1.0") as error:
        call(train, *TINY, f"--workdir={tmp_path}")
    assert "\n" not in str(error.value)


def test_the_log_has_a_runs_starts_evaluations_and_outcomes(tiny, tmp_path, monkeypatch):
    config = changed(tiny, {"model.name": "mlp"})

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(experiment, "_summary", stop)
        experiment.train(config, tmp_path / "run", progress=False)
    experiment.train(config, tmp_path / "run", progress=False)
    log = (tmp_path / "run" / "train.log").read_text()
    experiment.train(config, tmp_path / "run", progress=False)  # finished: nothing to do
    assert (tmp_path / "run" / "train.log").read_text() == log
    lines = [line.split(" ", 2)[2] for line in log.splitlines()]
    assert lines[0].startswith("python ") and f"compgen_jax {__version__}, python 3." in lines[1]
    assert [line.split(":")[0] for line in lines[2:5]] == ["step 4", "step 8", "step 12"]
    assert "loss " in lines[2] and "exact ID " in lines[2]
    assert lines[5].startswith("KeyboardInterrupt after ") and lines[6] == lines[0]
    assert lines[-1].startswith("ended after ")


def test_an_error_of_a_users_file_is_one_line_wherever_it_is_raised(monkeypatch, tmp_path, capsys):
    path = tmp_path / "metric_of_mine.py"
    path.write_text("def mine(x):\n    return 1 / x\n")
    mine = settings.load_file(path).mine
    monkeypatch.setattr(cli.app, "run", lambda main, **_: main([]))
    monkeypatch.setattr(cli.compilation_cache, "enable", lambda: None)
    for name in ("show_only_warnings_of_jax", "use_all_cores"):
        monkeypatch.setattr(cli, name, lambda: None)
    with pytest.raises(SystemExit) as stop:
        cli.run(lambda: mine(0))
    assert stop.value.code == cli.FAILURE
    message = f"error: {path}, line 2: ZeroDivisionError: division by zero\n"
    assert capsys.readouterr().err == message
    with pytest.raises(ZeroDivisionError):  # the library's own errors keep their traceback
        cli.run(lambda: 1 / 0)


# --- processes -------------------------------------------------------------------------------


def start(module, *arguments, cwd=ROOT):
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments], cwd=cwd, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def wait_for_checkpoint(process, workdir, after=0):
    """Waits for a finished checkpoint of a step beyond `after`; returns its step."""
    deadline = time.monotonic() + 120
    while (checkpoints.latest_step(workdir / "checkpoints") or 0) <= after:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return checkpoints.latest_step(workdir / "checkpoints")


def test_a_killed_and_interrupted_run_started_again_ends_with_the_same_bits(tmp_path):
    """SIGKILL and Ctrl-C hit a step, or the writing of the files behind it."""
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    lasting = ("--config.training.epochs=400", "--config.training.evaluate_every=100")
    command = ["launch.train", *TINY, "--config.model.name=mlp", *lasting]
    process = start(*command, f"--workdir={stopped}")
    step = wait_for_checkpoint(process, stopped)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    process = start(*command, f"--workdir={stopped}")
    wait_for_checkpoint(process, stopped, after=step)
    code, _, errors = interrupt(process)
    assert code == cli.INTERRUPTED and "Traceback" not in errors, errors
    assert errors.splitlines()[-1].startswith("error: interrupted; the same command resumes")
    assert not (stopped / "summary.json").exists()
    for workdir in (whole, stopped):
        process = start(*command, f"--workdir={workdir}")
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0 and "exact_accuracy" in output, errors
    for name in ("metrics.csv", "summary.json"):
        assert (whole / name).read_bytes() == (stopped / name).read_bytes()
    record = Path("checkpoints", "1200", "record.json")
    first, second = (json.loads((workdir / record).read_text()) for workdir in (whole, stopped))
    assert first["arrays"] == second["arrays"]


def test_a_process_ends_in_one_line_and_a_status(tmp_path):
    """From another directory, by a flag file that lies there."""
    (tmp_path / "file").write_text("mine")
    (tmp_path / "flags").write_text("--config=bump_cnn_quick\n--workdir=file/sub")
    process = start("launch.train", "--flagfile=flags", cwd=tmp_path)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == cli.FAILURE and not output, errors
    assert errors.startswith("error: ") and len(errors.splitlines()) == 1
    assert "Not a directory" in errors
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "flags"]
