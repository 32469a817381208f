"""The code of README, of the tutorials and of the page on hold-outs runs as it is written, on tiny
networks."""

import json
import re
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

from compgen_jax import cli, presets
from compgen_jax.config import changed
from compgen_jax.tasks import holdouts
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.sprites import Sprites
from compgen_jax.training import contracts
from figures import committed, plotting, quoted
from figures.benchmark import benchmark_tables
from figures.tables import table
from tests.command import blocks, run

ROOT = Path(__file__).parents[1]
README, START, YOUR_DATA, DIGITS, HOLD_OUT = (
    (ROOT / f"{name}.md").read_text()
    for name in ("README", "docs/index", "docs/tutorials/your_data", "docs/tutorials/digits",
                 "docs/how_to/hold_out")
)  # fmt: skip
TINY = {
    "bump_cnn_quick": {
        "task.grid": 8, "task.support.high": 4, "task.support.samples": 96, "model.width": 4,
        "model.depth": 2, "training.epochs": 4, "training.evaluate_every": 2
    },
    "table": {
        "model.name": "mlp", "model.depth": 1, "model.width": 8, "training.batch_size": 4,
        "training.evaluate_every": 500, "training.seeds": (0, 3)
    }
}  # fmt: skip
NOTEBOOKS = {
    "first_look": TINY["bump_cnn_quick"] | {"model.name": "mlp", "training.seeds": (0, 3)},
    "own_task": {"training.steps": 60, "training.evaluate_every": 30, "training.seeds": (0, 3)},
}


def commands(page: str) -> list[str]:
    """Those of its blocks, and of its text where they have flags."""
    lines = "".join(blocks(page)).replace("\\\n", " ").splitlines()
    of_blocks = [line for line in lines if line.startswith("compgen-jax ")]
    return of_blocks + re.findall(r"`(compgen-jax \S+ --[^`]+)`", page)


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """An empty directory to work in, where two presets are tiny ones."""
    path = tmp_path_factory.mktemp("desk")
    committed.configs("quick")  # kept for later tests, so made of the real preset
    with pytest.MonkeyPatch.context() as patch, jax.numpy_rank_promotion("allow"):
        patch.chdir(path)
        for name, values in TINY.items():
            patch.setitem(presets.PRESETS, name, changed(presets.get_config(name), values))
        yield path


def test_the_first_look_of_the_readme_in_python_and_by_command_line(desk, capsys):
    exec(blocks(README, "python")[0], {})
    printed = capsys.readouterr().out
    assert "held_out\nFalse" in printed and "runs/first/explorer.html\n" in printed
    assert (desk / re.search(r'savefig\("(.*)"\)', README)[1]).exists()
    (desk / "runs/first/explorer.html").unlink()
    trained = (desk / "runs/first/summary.json").stat().st_mtime_ns
    for line in commands(START)[:3]:
        run(line)
    assert "rendered" in capsys.readouterr().out
    assert (desk / "runs/first/summary.json").stat().st_mtime_ns == trained  # one run, both ways
    assert (desk / "runs/first/figures/point_8_8.png").exists()
    assert (desk / "runs/first/explorer.html").exists()


def phrases(page: str, rows: dict):
    """The phrases of a page that quote numbers (quoted.toml), with the committed ones. A verdict is
    the one that its phrase was written for."""
    of_panels = [quoted.panel_numbers(paper, rows) for paper in quoted.read("panels")]
    corrected = {name: number for numbers in of_panels for name, number in numbers.items()}
    for phrase, names in quoted.read("quoted")[page].items():
        numbers = []
        for name in [names] if isinstance(names, str) else names:
            row, _, verdict = name.partition(" = ")
            name, _, how = name.rpartition("; ")
            if verdict:
                assert rows[row]["verdict"] == verdict, f"{page}: rewrite {phrase!r}"
            elif how == "confirmed":
                numbers.append(confirmed(rows))
            else:
                is_sign = how.startswith(("below", "above"))
                number = corrected.get(name) or quoted.number(name, rows)
                numbers.append(quoted.formatted(number, "sign" if is_sign else how))
        yield phrase.format(*numbers)


def confirmed(rows: dict) -> str:
    pairs = [(rows.get(key.replace("fresh", "quick")), row)
             for key, row in rows.items() if key.startswith("fresh ")]  # fmt: skip
    again = [base["verdict"] == fresh["verdict"] for base, fresh in pairs
             if base and base["verdict"] != "inconclusive"]  # fmt: skip
    return f"{sum(again)} of {len(again)}"


def test_the_readme_and_findings_say_what_came_out():
    """Each share and decimal of README is a committed number, and so is each number with an
    interval, and each verdict, of the findings (quoted.toml)."""
    seeds = json.loads((ROOT / "docs/results/quick/runs/bump_cnn_quick.json").read_text())["seeds"]
    for region, held_out in (("id", "False    "), ("ood", "True     ")):
        mean = np.mean([seeds[seed][f"{region}.rendered"] for seed in ("0", "1")])
        assert f"# {held_out}{mean:.2f} " in README
    rows = quoted.by_key({scale: committed.rows(scale) for scale in ("quick", "paper")})
    tables = {
        "findings/benchmark": benchmark_tables.lines(committed.runs("quick")),
        "findings/beyond": shares_by_distance(),
    }
    for name in quoted.read("quoted"):
        page = README if name == "README" else (ROOT / f"docs/{name}.md").read_text()
        page = re.sub(r"^```.*?^```$", "", page, flags=re.S | re.M)
        spans = []
        for phrase in (*phrases(name, rows), *tables.pop(name, ())):
            assert phrase in page, f"{name}: {phrase}"
            spans += [match.span() for match in re.finditer(re.escape(phrase), page)]
        by_hand = r"\[-?[\d.]+, -?[\d.]+\]|reproduced|contradicted"
        if name == "README":
            spans += [m.span() for m in re.finditer(r"\]\(.*?\)|3\.1\d|95% interval", page)]
            by_hand = r"\d%|\d\.\d(?! to)"
        for number in re.finditer(by_hand, page):
            quotes = (low <= number.start() and number.end() <= high for low, high in spans)
            assert any(quotes), f"{name}: {page[number.start() - 40 : number.end() + 20]}"
    (lines,) = tables.values()
    assert "\n".join(lines) in (ROOT / "docs/findings/benchmark.md").read_text()


def shares_by_distance() -> list[str]:
    """The share rendered by distance to the nearest ID cell, by a network and by KRR."""
    titles = {
        "interpolation": "KRR",
        "convolutional decoder": "upsampling CNN",
        "the same, stripes added": "the same, single-factor images in training",
        "per pixel, own weights": "coordinate MLP, untied",
        "per pixel, shared weights": "coordinate MLP, tied",
    }
    every = pd.read_csv(committed.RESULTS / "quick/figures/drawings.csv")
    lines = []
    for name, title in titles.items():
        by_distance = every[every.panel == name].groupby("point").value
        how = "%." if title == "KRR" else "%"
        shares = [plotting.mean_share(values) for _, values in by_distance]
        lines.append((title, *(quoted.formatted(share, how) for share in shares)))
    levels = (f"{level:g}" for level in sorted(every.point.unique()))
    return table(("network", *levels), lines)


def test_the_readme_stays_short():
    """Words as they are read: without comments, code, the targets of links and rules of tables."""
    text = re.sub(r"^```.*?^```", "", README, flags=re.S | re.M)
    read = lambda text: re.sub(r"\]\([^)]*\)|^[|\s:-]+$", "", text, flags=re.M)
    assert len(read(text).split()) <= 800
    assert len(re.findall(r"\d+(?:[.,]\d+)*", read(text))) <= 45
    assert len(read(README.partition("```")[0]).split()) <= 150
    assert "<!--" not in README


def test_your_data_by_the_commands_the_flags_and_the_snippet_of_its_page(desk, capsys):
    file, snippet = blocks(YOUR_DATA, "python")
    exec(file, {})
    train, *others, _ = commands(YOUR_DATA)
    for line in (train, *others):
        run(line)
    assert "table: The network composes what was held out: " in capsys.readouterr().out
    for name in ("figures/point_square_10_8.png", "figures/run.png", "explorer.html"):
        assert (desk / "runs/mine" / name).exists()
    trained = (desk / "runs/mine/summary.json").stat().st_mtime_ns
    names = {}
    exec(snippet, names)
    assert (desk / "runs/mine/summary.json").stat().st_mtime_ns == trained
    assert names["run"].cell_table().groupby(["held_out", "shape"]).ngroups == 4
    plain = "compgen-jax train --config=table --config.task.path=mine.npz "
    read = lambda flags: run(plain + flags, lambda: cli.read_config(cli.define_config()))
    for flags in re.findall(r"`(--config[^`]*)`", YOUR_DATA):
        config = read(flags)
        contracts.check(config)
        assert config != read("") or "mlp" in flags, flags  # which the tiny one has already


def test_digits_by_the_commands_and_the_snippets_of_its_page(desk, capsys):
    """Several images of a combination: a decoder and two encoders of few steps, to their scores."""
    pytest.importorskip("sklearn")
    file, snippet = blocks(DIGITS, "python")
    exec(file, {})
    assert len(np.load("digits.npz")["images"]) == 1797
    for line in commands(DIGITS):
        run(line.replace("steps=1000", "steps=20"))
    exec(snippet, {})
    printed = "".join(capsys.readouterr())
    quoted_lines = blocks(DIGITS, "text")[0].splitlines()
    assert len(quoted_lines) == 2 and all(line in printed for line in quoted_lines)
    assert re.search(r"encoder \{False: .*, True: .*\}\nrandom \{False", printed)
    assert (desk / "runs/decoder/figures/point_8_6_0.6.png").exists()


def test_the_square_of_a_sweep_over_grids_grows_with_them():
    """The command of the page: the square is centred, its side 0.6 of the grid's, to a cell."""
    page = (ROOT / "docs/how_to/sweeps.md").read_text()
    (line,) = (line for line in commands(page) if "support.side" in line)
    config = run(line, lambda: cli.read_config(cli.define_config()))
    for grid in dict(config.sweep.axes)["task.grid"]:
        task = changed(config, {"task.grid": grid, "sweep.axes": ()}).task.make()
        held_out = tasks.regions(task)["ood"]
        square = tasks.points(task)[held_out]
        (low, _), (high, _) = square.min(axis=0), square.max(axis=0)
        assert held_out.sum() == (high - low + 1) ** 2 and abs(high - low + 1 - 0.6 * grid) <= 1
        assert abs(low + high - (grid - 1)) <= 1 and task.examples == (~held_out).sum()


def test_each_sentence_and_function_of_the_page_on_hold_outs():
    """On sprites; the parts of a row's first cell, up to its end."""
    page = HOLD_OUT.partition("## Published")[0]
    sentences = re.findall(r"^\| `(.+?)` \|", page, re.M) + re.findall(r'held_out="(.*?)"', page)
    factors = Sprites().scene().factors
    masks = [holdouts.held_out_points(one, factors, tasks.cells(factors)) for one in sentences]
    assert len(masks) == 18 and all(mask.any() and not mask.all() for mask in masks)
    for name, words in holdouts.PUBLISHED.items():
        assert f"\n{name}: {words}\n" in HOLD_OUT
    assert {*holdouts.TAKES} == {text.partition("(")[0] for text in sentences} & {*holdouts.TAKES}
    data, columns = np.arange(3), {"shape": ["heart", "heart", "square"], "posX": [0.1, 0.9, 0.9]}
    split = {"frame": columns, "data": data}
    exec(blocks(HOLD_OUT, "python")[0], split)
    assert split["test"] == data[1:2] and len(split["train"]) == 2
    exec(blocks(HOLD_OUT, "python")[1], split)
    assert split["table"]["combinations.held_out"].tolist() == [1]


def test_what_the_page_on_hold_outs_prints_is_what_its_command_does(capsys, monkeypatch):
    preset = committed.configs("quick")["bump_cnn"]  # not the tiny one
    monkeypatch.setitem(presets.PRESETS, preset.name, preset)
    run(commands(HOLD_OUT)[-1])
    assert capsys.readouterr().out in blocks(HOLD_OUT, "text")[0]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_and_is_committed_without_outputs(desk, name):
    text = (ROOT / "docs" / "tutorials" / f"{name}.ipynb").read_text()
    code = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in code)
    names = {}
    for cell in code:
        source = "".join(cell["source"]).replace("runs/first", f"runs/{name}")
        if "parameters" in cell["metadata"].get("tags", ()):
            source = f"overrides = {NOTEBOOKS[name]}"
        if source.startswith("%%writefile "):
            first, _, source = source.partition("\n")
            Path(first.split()[1]).write_text(source)
        else:
            exec(source, names)
    assert {"run", "cg"} <= names.keys()
