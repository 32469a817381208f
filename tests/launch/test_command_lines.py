"""The command lines as a user types them: most in this process, a few in processes of their own."""

import importlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax import cli, settings
from compgen_jax.config import Config, ConfigError, changed
from compgen_jax.metrics import text
from compgen_jax.models.mlp import MLP
from compgen_jax.presets import PRESETS
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.run import Run
from compgen_jax.statistics import mean_with_interval
from compgen_jax.training import checkpoints
from launch import analyze, compgen, judge, train
from tests.command import call, refused
from tests.interrupts import interrupt, wait_until

ROOT = Path(__file__).parent.parent.parent
SMALL = {
    "task.grid": 8,
    "task.support.high": 4,
    "task.support.samples": 96,
    "model.width": 4,
    "model.depth": 2,
    "training.seeds": (0, 3),
    "training.evaluate_every": 20,
}
TINY = ["--config=bump_cnn_quick", *(f"--config.{name}={value}" for name, value in SMALL.items())]


# --- what the flags say ----------------------------------------------------------------------


def read(*arguments):
    """The Config of a command line, as `main` gets it."""
    return call(SimpleNamespace(main=lambda: cli.read_config(train.CONFIG)), *arguments)


@pytest.fixture(autouse=True)
def empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


AXES = {"task.grid": (8, 12), "model.name": ("conv", "mlp")}
READ = [
    (["--config", "bump_cnn_quick", "--config.task.grid", "8", "--config.task.grid=12"],
     {"task.grid": 12}),
    ([f"--config={ROOT}/launch/config.py:bump_cnn_quick", *TINY[1:]], SMALL),
    ([TINY[0], "--config.task.support.region=none",
      "--config.sweep.axes=(('task.grid',(8,12)),('model.name',('conv','mlp')))"],
     {"task.support.region": "none", "sweep.axes": tuple(AXES.items())}),
    ([TINY[0], "--config.task.code.name=onehot", "--config.model.name=lowrank",
      "--config.model.penalty.entropy=0.5"],
     {"task.code.name": "onehot", "model.name": "lowrank", "model.penalty.entropy": 0.5}),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "values"), READ)
def test_a_preset_and_overrides_by_their_types(arguments, values):
    assert read(*arguments) == changed(PRESETS["bump_cnn_quick"], values)


def test_a_flag_file_carries_overrides_and_what_comes_later_counts(tmp_path):
    inner, outer = tmp_path / "inner.txt", tmp_path / "flags.txt"
    inner.write_text("--config.task.grid=12\n--config.training.epochs=3\n")
    lines = ["# mine", TINY[0], "", f"--flagfile={inner}", "--config.name=two words"]
    outer.write_text("\n".join(lines))
    config = read("--config.model.width", "4", f"--flagfile={outer}", "--config.training.epochs=5")
    assert (config.task.grid, config.training.epochs, config.model.width) == (12, 5, 4)
    assert config.name == "two words"


OWN = """
from compgen_jax.config import Config
from compgen_jax.models.mlp import MLP


def get_config(name="small"):
    return Config(name=name, model=MLP(width={"small": 8, "large": 64}[name]))
"""


def test_a_config_file_of_ones_own(tmp_path):
    path = tmp_path / "my configs.py"
    path.write_text(OWN)
    assert read(f"--config={path}:large") == Config(name="large", model=MLP(width=64))
    config = read("--config=my configs.py", "--config.model.depth=2")
    assert config == Config(name="small", model=MLP(width=8, depth=2))


BAD = [
    ([], "--config is missing; give a preset's name, or FILE.py:NAME of your own"),
    (["--config=bump_cn"], "--config=bump_cn: no preset 'bump_cn'; nearest: bump_cnn, "),
    ([f"--config={ROOT}/setup.cfg:bump_cnn"], "setup.cfg: is not a Python file"),
    (
        [TINY[0], "--config.task.gird=8"],
        "config.task.gird: no such field; nearest: config.task.gri",
    ),
    ([TINY[0], "--config.task.grid", "x"], "config.task.grid='x': must be of type int"),
    ([TINY[0], "--config.task.grid=4"], "config.task.grid=4: must be at least 8 and at most"),
    ([TINY[0], "--workdir="], "--workdir is missing"),
    ([TINY[0], "--workdri=x"], "--workdri: no such flag; "),
    ([TINY[0], "stray"], "'stray' is not a flag"),
    ([*TINY, "--config.model.width=1000000", "--dry_run"], "out of memory: weights and optim"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_a_bad_command_line_is_one_line_and_writes_nothing(tmp_path, capsys, arguments, message):
    with pytest.raises((ConfigError, RunError, SystemExit)) as stop:
        call(train, "--workdir=run", *arguments)
    errors = capsys.readouterr().err.removesuffix("\n")  # of flags that nobody knows
    text = errors or str(stop.value)
    assert message in text and "\n" not in text
    assert not (tmp_path / "run").exists()
    assert not errors or (errors.startswith("error: ") and stop.value.code == cli.USAGE_ERROR)


FILES = {
    "ends.py": b"raise GeneratorExit('over')",
    "throws.py": b"class Thrown(BaseException): pass\ndef get_config(): raise Thrown('over')",
    "interrupts.py": b"raise KeyboardInterrupt",
    "binary.txt": b"\xff\xfe",
}
EPOCHS = "must be of type int and at least 1 and at most 10000000"
QUICK = "train --config=bump_cnn_quick --config."
HOSTILE = {
    "train --config=ends.py": "ends.py, line 1: GeneratorExit: over",
    "train --config=throws.py": "throws.py, line 2: Thrown: over",
    f"{QUICK}training.epochs=1.5": f"config.training.epochs=1.5: {EPOCHS}",
    f"{QUICK}training.epochs=1e9": f"config.training.epochs=1000000000.0: {EPOCHS}",
    f"{QUICK}training.steps=1e3": "must be of type int and at least 0 and at most 1000000000",
    f"{QUICK}model.coordinates=maybe": "config.model.coordinates='Maybe': must be True or False",
    f"{QUICK}task.N=3": "config.task.N: no such field; nearest: config.task.name, ",
    f"{QUICK}task.name=../x.py:Y": "config.task.name='../x.py:Y': there is no file ../x.py",
    f"{QUICK}sweep.axes=(('a',(1,)),)": "config.sweep.axes: config.a: no such field; nearest: ",
    f"{QUICK}sweep.axes=(('task.grid',(1,)),)": "config.sweep.axes: config.task.grid=1: must be at",
    "train --dry_run=maybe": "--dry_run=maybe: must be true or false",
    "train --log_dri=x": "--log_dri: no such flag; ",
    "train --flagfile=none.txt": "--flagfile=none.txt: No such file or directory",
    "train --flagfile=binary.txt": "--flagfile: must name a file of text",
    "sweep --num_processes=abc": "--num_processes=abc: must be a positive integer",
    "score --seed=1.5": "--seed=1.5: must be a non-negative integer",
    "figures --scale=medium": "--scale=medium: must be quick or paper",
    "figures --extend=none.py": "--extend=none.py: there is no file none.py",
    "explore --workdir=run --seeds=²": "--seeds=²: must be numbers, comma-separated",
} | {
    f"{command} --workdir=ends.py": "ends.py: is a file, not a directory"
    for command in ("analyze", "plot", "draw", "explore")
}  # fmt: skip


@pytest.mark.parametrize(("line", "message"), HOSTILE.items())
def test_a_hostile_command_line_is_one_line_that_names_what_is_allowed(
    tmp_path, capsys, line, message
):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    name, *arguments = line.split()
    module = importlib.import_module(compgen.COMMANDS[name][0])
    with pytest.raises((ConfigError, RunError, SystemExit)) as stop:
        call(module, *arguments)
    text = capsys.readouterr().err.removesuffix("\n") or str(stop.value)
    assert message in text and "\n" not in text and "log_dir" not in text
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {*FILES}
    with pytest.raises(KeyboardInterrupt):  # is no error
        read("--config=interrupts.py")


def test_a_refusal_lists_a_few_names_whole_and_the_nearest_of_many():
    assert settings.nearest_or_all("x", []) == "allowed: none"
    assert settings.nearest_or_all("--workdri", ["--seed", "--out"]) == "allowed: --seed, --out"
    many = [f"--{name}" for name in (*"abcdefghijkl", "workdir")]
    assert re.fullmatch("nearest: --workdir, --., --.", settings.nearest_or_all("--workdri", many))


def test_an_error_reaches_the_terminal_without_control_characters(capsys):
    with pytest.raises(SystemExit):
        cli._stop(RunError("\x1b[31mred\nname é\udcff: there is no such directory"), cli.FAILURE)
    escaped = r"error: \x1b[31mred\nname é\udcff: there is no such directory"
    assert capsys.readouterr().err == f"{escaped}\n"


# --- commands in this process ----------------------------------------------------------------


def test_train_prints_scores_and_analyze_prints_layers(tmp_path, capsys):
    command = [*TINY, "--config.training.epochs=2", "--config.model.name=mlp",
               "--config.model.depth=1"]  # fmt: skip
    call(train, *command, "--config.task.support.region=none", f"--workdir={tmp_path / 'none'}")
    output = capsys.readouterr().out
    assert re.search(r"^OOD, late median +– +–$", output, re.M)  # as nothing is held out
    assert re.search(r"^OOD, best baseline +– +–$", output, re.M) and "must be" not in output
    mean = json.loads((tmp_path / "none" / "summary.json").read_text())["mean"]
    assert mean["ood.mse"]["value"] is None and mean["id.mse"]["value"] > 0
    workdir = f"--workdir={tmp_path / 'run'}"
    with refused("there is no such directory"):
        call(analyze, workdir)
    call(train, *command, workdir)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["rendered", "mse"] and "summary.json" in printed.pop()
    seeds = json.loads((tmp_path / "run" / "summary.json").read_text())["seeds"]
    id_mse, ood_mse = (
        mean_with_interval([numbers[f"{region}.mse"] for numbers in seeds.values()])
        for region in ("id", "ood")
    )
    assert printed[1].endswith(f" {text.with_interval(id_mse)}")
    assert printed[2].endswith(f" {text.with_interval(ood_mse)}")
    run = Run.load(tmp_path / "run")
    shares = {name: means["ood", "rendered"] for name, means in run.trivial.items()}
    errors = {name: means["ood", "mse"] for name, means in run.trivial.items()}
    best, least = max(shares, key=shares.get), min(errors, key=errors.get)
    expected = text.number(shares[best]), best, text.number(errors[least]), least
    assert printed[3].split()[3:] == [*expected]
    assert printed[4].startswith("The network composes what was held out: inconclusive, not tr")
    call(judge, str(tmp_path / "run"), positional=(judge.FOLDERS,))
    judged = capsys.readouterr().out
    assert judged.splitlines()[1:3] == printed[5:]  # both conditions
    assert f"  rendered OOD of the best baseline, {best}: {expected[0]}\n" in judged
    call(analyze, workdir, "--layers=layer_01,output")
    output = capsys.readouterr().out
    head, first, *_ = output[output.index("mean over seeds") :].splitlines()
    assert head.split()[-2:] == ["layer_01", "output"] and len(first[22:].split()) == 2
    assert (tmp_path / "run" / "analysis.json").exists()
    with refused("--layers=layer_9: no such layer; ", " has layer_00"):
        call(analyze, workdir, "--layers=layer_9")


def test_an_error_of_a_users_file_or_of_a_place_is_one_line(monkeypatch, tmp_path, capsys):
    path = tmp_path / "metric_of_mine.py"
    path.write_text("def mine(x):\n    return 1 / x\n")
    mine = settings.load_file(path).mine
    monkeypatch.setattr(cli.app, "run", lambda main, **_: main([]))
    monkeypatch.setattr(cli.compilation_cache, "enable", lambda: None)
    for name in ("show_only_warnings_of_jax", "use_all_cores", "heed_interrupts"):
        monkeypatch.setattr(cli, name, lambda: None)
    with pytest.raises(SystemExit) as stop:
        cli.run(lambda: mine(0))
    assert stop.value.code == cli.FAILURE
    message = f"error: {path}, line 2: ZeroDivisionError: division by zero\n"
    assert capsys.readouterr().err == message
    with pytest.raises(SystemExit):
        cli.run(lambda: (path / "sub").mkdir())
    assert re.fullmatch("error: .*Not a directory.*\n", capsys.readouterr().err)
    with pytest.raises(SystemExit):
        cli.run(lambda: np.empty(2**50))
    assert re.fullmatch("error: out of memory: Unable to allocate.*\n", capsys.readouterr().err)
    with pytest.raises(ZeroDivisionError):  # the library's own errors keep their traceback
        cli.run(lambda: 1 / 0)


class Finalized:
    """Raises where Python drops what is raised."""

    def __init__(self, error):
        self.error = error

    def __del__(self):
        raise self.error


def test_ctrl_c_ends_what_does_not_see_it(monkeypatch, capsys):
    ended = queue.Queue()
    monkeypatch.setattr(os, "_exit", ended.put)
    monkeypatch.setattr(sys, "unraisablehook", None)
    cli.heed_interrupts(patience=0)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    signal.set_wakeup_fd(-1)
    assert ended.get(timeout=10) == cli.INTERRUPTED
    Finalized(KeyboardInterrupt())
    assert ended.get_nowait() == cli.INTERRUPTED
    Finalized(ValueError("of another kind"))
    assert ended.empty() and "of another kind" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", (0.2, 0.7))  # of two to three
def test_ctrl_c_while_modules_are_imported_is_one_line(seconds):
    script = "from launch import compgen; print(flush=True); compgen.main()"
    command, pipe = [sys.executable, "-c", script, "train", "--help"], subprocess.PIPE
    process = subprocess.Popen(command, cwd=ROOT, text=True, stdout=pipe, stderr=pipe)
    assert process.stdout.readline() == "\n"
    time.sleep(seconds)
    errors, output, code = interrupt(process)
    assert (errors, output, code) == ("error: interrupted\n", "", cli.INTERRUPTED)


# --- processes -------------------------------------------------------------------------------


def start(module, *arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments], cwd=ROOT, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.parametrize("is_read", (True, False))
def test_help_ends_in_quiet_also_where_its_reader_has_gone(is_read):
    with start("launch.explore", "--help") as process:
        if not is_read:
            process.stdout.close()
        errors = process.stderr.read()
        assert not is_read or "--workdir" in process.stdout.read()
    assert (errors, process.returncode) == ("", 0)


def wait_for_checkpoint(process, workdir, after=0):
    """Waits for a finished checkpoint of a step beyond `after`; returns its step."""
    latest_step = lambda: max(checkpoints.steps(workdir / "checkpoints"), default=0)
    wait_until(lambda: latest_step() > after, process)
    return latest_step()


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
    errors, _, code = interrupt(process)
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
    lines = [line.split(" ", 2)[2] for line in (stopped / "train.log").read_text().splitlines()]
    assert sum(line.startswith("python ") for line in lines) == 3 and "step 1200: " in str(lines)
    assert "KeyboardInterrupt" in lines and lines[-1] == "ended"
