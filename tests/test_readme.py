"""The README: each of its commands and snippets is run as it is written, on tiny networks, and each
of its numbers is that of a file."""

import fnmatch
import json
import re
from configparser import ConfigParser
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import yaml

import compgen_jax
from compgen_jax.config import changed
from compgen_jax.papers import presets
from compgen_jax.tasks import task as tasks
from figures import committed, make, pages
from tests.command import run

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.S | re.M)
PYTHON = [text for language, text in BLOCKS if language == "python"]
COMMANDS = [
    line
    for language, text in BLOCKS
    for line in text.splitlines()
    if line.startswith("compgen-jax ")
] + re.findall(r"`(compgen-jax \S+ --[^`]+)`", README)
ONLY = re.findall(r"--only=([\w,]+)`", README)
TINY = {
    "task.grid": 8,
    "task.support.high": 4,
    "task.support.samples": 96,
    "model.width": 4,
    "model.depth": 2,
    "training.epochs": 4,
    "training.evaluate_every": 2,
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """An empty directory to work in, where the first preset is a tiny one."""
    path = tmp_path_factory.mktemp("desk")
    committed.configs("quick")  # kept for later tests, so made of the real preset
    tiny = changed(presets.get_config("bump_cnn_quick"), TINY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        patch.setitem(presets.PRESETS, "bump_cnn_quick", tiny)
        yield path


def test_it_is_short_and_its_other_commands_are_known():
    assert len(README.splitlines()) <= 110 and len(PYTHON) == 2
    commands = [line.split()[1] for line in COMMANDS]
    assert commands[:3] == ["train", "draw", "explore"]
    assert set(commands[3:]) == {"figures", "probe"}


def test_the_first_look_in_python_and_by_command_line(desk, capsys):
    exec(PYTHON[0], {})
    printed = capsys.readouterr().out
    assert "held_out\nFalse" in printed and "runs/first/explorer.html\n" in printed
    assert (desk / "first_look.png").exists()
    (desk / "runs/first/explorer.html").unlink()
    trained = (desk / "runs/first/summary.json").stat().st_mtime_ns
    for line in COMMANDS[:3]:
        run(line)
    assert "rendered" in capsys.readouterr().out
    assert (desk / "runs/first/summary.json").stat().st_mtime_ns == trained  # one run, both ways
    assert (desk / "runs/first/figures/point_8_8.png").exists()
    assert (desk / "runs/first/explorer.html").exists()


def test_what_the_first_look_prints_is_what_came_out():
    path = ROOT / "docs/results/quick/runs/bump_cnn_quick.json"
    seeds = json.loads(path.read_text())["seeds"]
    for region, words in (("id", "of those not held out"), ("ood", "of those held out")):
        mean = np.mean([seeds[seed][f"{region}.rendered"] for seed in ("0", "1")])
        assert f"{100 * mean:.0f}% {words}" in README


def test_a_task_and_activations_of_ones_own(desk):
    names = {}
    exec(PYTHON[1], names)
    task = names["task"]
    held_out = tasks.points(task)[np.asarray(task.held_out(tasks.points(task)))]
    assert held_out.tolist() == [[5, 5], [6, 5], [5, 6], [6, 6]]
    _, target = task.example(jax.random.key(0), jnp.array([2.0, 3.0]))
    np.testing.assert_allclose(target, 3 * np.sin(2 * np.linspace(0, 3, 16)), atol=1e-5)
    rng = np.random.default_rng(0)
    points = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
    activations = np.tanh(points @ rng.normal(size=(2, 16)))
    names |= {"activations": activations, "factor_values": points}
    (save,) = re.findall(r"`(np\.savez.*?)`", README)
    exec(save, names | {"is_held_out": points.min(1) > 3})
    (probe,) = [line for line in COMMANDS if " probe " in line]
    run(probe)
    assert (desk / "probe.json").exists()


# --- facts -----------------------------------------------------------------------------------


def test_every_figure_that_is_named_is_one_and_its_status_is_that_of_docs_results():
    drawn = {scale: committed.drawn(scale) for scale in ("quick", "paper")}
    named = {name for names in ONLY for name in names.split(",")}
    assert named <= set(make.FIGURES)
    rows = [row.strip("| ").split(" | ") for row in README.splitlines() if "| `--only" in row]
    assert len(rows) == 8
    for _, flags, _, *status in rows:
        names = ",".join(re.findall(r"--only=([\w,]+)", flags)).split(",")
        for scale, said in zip(("quick", "paper"), status, strict=True):
            there = [name for name in names if name in drawn[scale]]
            some = "only " + ", ".join(there)
            assert said == {len(names): "done", 0: "not done"}.get(len(there), some)


def test_its_facts_are_those_of_the_files():
    for target in ("figures", "test", "bench"):
        assert f"`make {target}`" in README and f"\n{target}: " in (ROOT / "Makefile").read_text()
    (line,) = [line for _, text in BLOCKS for line in text.splitlines() if "pip install" in line]
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    extras = {name for names in re.findall(r"'\.\[(.*?)\]'", line) for name in names.split(",")}
    assert extras and extras <= set(config["options.extras_require"])
    for minor in re.findall(r"3\.(\d+)", line):
        assert f"Python :: 3.{minor}" in config["metadata"]["classifiers"]
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert f"version={{{compgen_jax.__version__}}}" in README
    assert str(cff["version"]) == compgen_jax.__version__ and f"title={{{cff['title']}}}" in README
    page = (ROOT / "docs/reference/speed.md").read_text()
    ratios = re.findall(r"\b0\.\d\d\b", README.partition("**Speed.**")[2].partition("\n- ")[0])
    assert ratios and all(f"**{ratio}**" in page for ratio in ratios)


# --- findings --------------------------------------------------------------------------------

ROWS = {
    scale: {(row["claim"], row["case"]): row for row in committed.rows(scale)
            if row["setting"] == "base"}
    for scale in ("quick", "paper")
}  # fmt: skip
SENTENCES = (ROOT / "figures/findings.md").read_text().partition("\n## Real factors")[0]
FINDINGS = re.findall(r"\[\[([^/\]]+)/([^;=\]]*) = (\w+)\]\]", SENTENCES)


def line_of(claim: str) -> str:
    (line,) = [line for line in README.splitlines() if f" ({claim} " in line]
    return line


@pytest.mark.parametrize("claim, case, verdict", FINDINGS)
def test_a_finding_has_the_numbers_and_verdicts_of_claims_json(claim, case, verdict):
    line, row = line_of(claim), ROWS["quick"][claim, case]
    assert row["verdict"] == verdict and f"({claim} {verdict};" in line
    first = next(iter(row["conditions"].values()))
    number = re.search(r"(-?[\d.]+)(%?) \[(-?[\d.]+), (-?[\d.]+)\]", line)
    scale = 100 if number[2] else 1
    measured = np.minimum(np.array([first["value"], *first["ci95"]]) * scale, 100)
    written = [float(number[group]) for group in (1, 3, 4)]
    np.testing.assert_allclose(written, measured, atol=0.006 * scale**0.5)
    settings = row.get("settings")
    assert ("settings:" in line) == bool(settings)
    if settings:
        assert f"settings: {settings['agree']} of {settings['trained']};" in line
    larger = ROWS["paper"].get((claim, case))
    assert ("the paper's size:" in line) == bool(larger)
    if larger:
        assert f"the paper's size: {larger['verdict']};" in line
    assert (ROOT / re.search(r"\]\((.*?)\)", line)[1]).exists()


def test_the_figure_of_a_finding_trains_what_its_claim_needs():
    every = committed.configs("quick")
    for claim, case, _ in FINDINGS:
        (figure,) = re.findall(r"--only=(\w+)", line_of(claim))
        shown = make.FIGURES[figure].shows(every, "quick")
        assert all(fnmatch.filter(shown, name) for name in ROWS["quick"][claim, case]["runs"])


def test_a_sentence_is_not_printed_for_another_verdict():
    rows = {scale: list(ROWS[scale].values()) for scale in ROWS}
    printed = [line for line in README.splitlines() if re.match(r"\d\. ", line)]
    assert pages.findings("README", rows, "docs/results/quick") == printed
    other = [ROWS["quick"]["C1", "bump"] | {"verdict": "contradicted"}]
    for quick, now in ((other, "contradicted"), ([], "None")):
        with pytest.raises(ValueError, match=f"C1 .bump. is now {now}, and its sentence was"):
            pages.findings("README", rows | {"quick": quick}, "")
