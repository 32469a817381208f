"""The explorer in Chromium, on runs of a second, against NumPy and JAX."""

import copy
from dataclasses import replace
from urllib.parse import parse_qsl

import numpy as np
import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from compgen_jax.models.conv import Conv
from compgen_jax.runs.run import Run
from compgen_jax.tasks.bump import SizeConfig
from figures import committed
from figures.explorer import page, payload
from tests.figures import live_networks
from tests.figures.stand_ins import train
from tests.figures.test_explorer import sprites_run
from tests.figures.test_pages import row as row_of

# rows of claims.json
VERDICT = row_of(verdict="contradicted", claim="X1", figure="Fig 1", runs=["three factors"])
LARGE = VERDICT | {
    "claim": "X2", "runs": [],
    "conditions": {"steps": {"value": 2e5, "ci95": None, "must be": "above 1e+05", "holds": True}},
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tiny, tiny_run, tmp_path_factory):
    """Two networks of two factors, and one of three."""
    support = replace(tiny.task.support, low=2, high=5, samples=120)
    task = replace(tiny.task, size=SizeConfig(values=3, low=1, high=1), support=support)
    config = replace(tiny, name="sizes", task=task, model=Conv(depth=2, width=4))
    three = train(config, tmp_path_factory.mktemp("sizes") / "run")
    config = replace(tiny, name="other", training=replace(tiny.training, seeds=(3,), epochs=8))
    other = train(config, tmp_path_factory.mktemp("other") / "run")
    return {"tiny": Run.load(tiny_run[0]), "three factors": three, "other": other}


@pytest.fixture(scope="module")
def path(runs, tmp_path_factory):
    return page.write(runs, tmp_path_factory.mktemp("page") / "page.html", [VERDICT, LARGE])


@pytest.fixture
def opened(open_page, path):
    """opened(hash, page, ...) -> the driver, once the page is drawn."""

    def open_at(place="", page=path, **window):
        driver = open_page(f"{page}#{place}", **window)
        ready = lambda d: d.execute_script("return document.body.dataset.ready")
        WebDriverWait(driver, 60).until(ready)
        return driver

    return open_at


def find(driver, selector):
    return driver.find_element(By.CSS_SELECTOR, selector)


def box(driver, selector):
    """Left, top, width and height of an element, in pixels of the window."""
    script = """const { left, top, width, height } = arguments[0].getBoundingClientRect();
    return [left, top, width, height];"""
    return driver.execute_script(script, find(driver, selector))


def state(driver):
    """The hash as a dict."""
    settle(driver)
    return dict(parse_qsl(driver.execute_script("return location.hash.slice(1)")))


def settle(driver):
    """Waits for the drawing of the last change, and for what follows it at leisure."""
    driver.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 120));"
    )


PUT = """
arguments[0][arguments[2]] = arguments[1];
for (const type of ["input", "change"]) arguments[0].dispatchEvent(new Event(type));
"""


def put(driver, selector, value, name="value"):
    """Moves a slider, as a drag does, or chooses from a list."""
    driver.execute_script(PUT, find(driver, selector), value, name)
    settle(driver)


def drag(driver, start, end, shift=False):
    """Drags over the map of 8 x 8 cells, from place to place; y upwards."""
    board = find(driver, "#map")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", board)
    cell = np.array([board.size["width"], -board.size["height"]]) / 8
    offsets = (np.array([start, end]) - 3.5) * cell  # from the middle
    press, release = offsets.round().astype(int).tolist()
    actions = ActionChains(driver, duration=50)
    if shift:
        actions.key_down(Keys.SHIFT)
    actions.move_to_element_with_offset(board, *press).click_and_hold()
    actions.move_to_element_with_offset(board, *release).release()
    actions.key_up(Keys.SHIFT).perform()
    settle(driver)


def pixels(driver, selector):
    """(H, W, 4) of a picture, the first row on top."""
    script = "const { width, height } = arguments[0]; return [height, width, ...arguments[0]" \
             ".getContext('2d').getImageData(0, 0, width, height).data];"  # fmt: skip
    height, width, *data = driver.execute_script(script, find(driver, selector))
    return np.reshape(data, (height, width, 4)).astype(float)


def assert_drawn(driver, figure, run, image, grid="#grid"):
    """Figure number so much, in grey, shows these values, the first row below: from 0, paper, to
    the largest value that is common, ink."""
    high = max(np.quantile(run.cells.predictions, 0.9995), run.cells.truths.max())
    red = pixels(driver, f"{grid} figure:nth-child({figure}) canvas.first")[::-1, :, 0]
    shares = (255 - red) / (255 - 0x11)
    np.testing.assert_allclose(shares, np.clip(image, 0, high) / high, atol=0.02)


def test_dragging_shows_what_is_asked_and_what_two_networks_draw_there(opened, runs):
    driver = opened("network=tiny&beside=other&at=1,1")
    names = [one.text for one in driver.find_elements(By.CSS_SELECTOR, "#beside option")]
    assert names == ["nothing", "other"]  # the third has another factor
    drag(driver, (1, 1), (4.5, 4))
    words = "asked for x = 4.5, y = 4, a combination never shown in training"
    assert find(driver, "#sentence").text.startswith(words.capitalize())
    assert find(driver, "#sentence-beside").text.startswith(f"other: {words}")
    x, y = np.meshgrid(np.arange(8), np.arange(8))
    bump = np.exp(-((x - 4.5) ** 2 + (y - 4) ** 2) / 2)
    for name, grid in (("tiny", "#grid"), ("other", "#grid-beside")):
        drawn = runs[name].predict(np.float32([[4.5, 4]]))[:, 0]
        for figure, image in enumerate((bump, *drawn), start=1):
            assert_drawn(driver, figure, runs[name], image, grid)
    put(driver, "#seed", 1)
    put(driver, "#step", 0)  # the same share of the other's training
    first, here = {name: run.kept_steps[0] for name, run in runs.items()}, np.float32([[5, 4]])
    expected = {"at": "5,4", "seed": "7", "step": str(first["tiny"])}
    assert expected.items() <= state(driver).items()
    assert find(driver, "#sentence").text.startswith(f"After {first['tiny']} training steps")
    for name, figure, grid in (("tiny", 3, "#grid"), ("other", 2, "#grid-beside")):
        image = runs[name].at(first[name]).predict(here)[-1, 0]
        assert_drawn(driver, figure, runs[name], image, grid)


def test_arrow_keys_move_by_steps_and_half_steps(opened):
    driver = opened("network=tiny&at=3,3")
    board = find(driver, "#map")
    board.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_UP, Keys.ARROW_UP)
    assert state(driver)["at"] == "4,5"
    board.send_keys(Keys.SHIFT + Keys.ARROW_LEFT)
    assert state(driver)["at"] == "3.5,5"
    board.send_keys("]", Keys.PAGE_DOWN)  # at an earlier step there is nothing between cells
    assert state(driver)["seed"] == "0" and state(driver)["at"] in ("3,5", "4,5")


def test_an_edited_code_draws_what_jax_draws(opened, runs):
    driver, run = opened("network=tiny&at=4,4"), runs["tiny"]
    code_at = lambda *place: np.array(run.task.example(None, np.float32(place)).input)
    code = code_at(4, 4)

    def expect(code):
        output = live_networks.in_jax(run, 0, [code])[0]
        assert live_sum(driver) == pytest.approx(float(np.sum(output)), abs=64e-4)

    expect(code)
    unit = '#live-body input[title="x, unit 1"]'
    put(driver, unit, 1)  # a second bump along x
    code[1] = float(find(driver, unit).get_property("value"))
    assert code[1] > 0.4
    expect(code)
    find(driver, "#live-body label:nth-of-type(2) input").click()  # y off
    code[8:] = 0
    expect(code)
    for value in max(code_at(7, 0)[:8]), 0:  # on, by its button, and off
        find(driver, '#live-body button[title^="x, unit 7:"]').click()
        code[7] = value
        expect(code)
    find(driver, "#live-body .controls button").click()  # keep this code, go elsewhere, and blend
    find(driver, "#live-body label:nth-of-type(2) input").click()
    find(driver, "#map").send_keys(Keys.ARROW_RIGHT)
    put(driver, "#live-body input[aria-label^=Blend]", 0.25)
    expect(0.75 * code_at(5, 4) + 0.25 * code)


def live_sum(driver) -> float:
    """The sum of what the network in the page draws."""
    settle(driver)
    return float(find(driver, "#live-body").get_attribute("data-sum"))


def test_a_brushed_region_has_the_mean_and_interval_over_seeds(opened, runs):
    driver, cells = opened("network=tiny&score=mse"), runs["tiny"].cells
    drag(driver, (1, 2), (5, 6), shift=True)
    assert state(driver)["region"] == "1,5,2,6"
    x, y = cells.factors.T
    inside = (x >= 1) & (x <= 5) & (y >= 2) & (y <= 6)
    means = cells.scores["mse"].astype(np.float64)[:, inside].mean(axis=1)
    half = 12.706204736 * np.ptp(means) / 2  # of one degree of freedom, at 97.5%
    errors, held_out = runs["tiny"].along.cells.scores["mse"].astype(float), cells.held_out
    every = np.stack([errors[..., mask].mean(axis=-1) for mask in (held_out, ~held_out)])
    axis = {"low": every.min(), "high": every.max()}
    region = {"mean": means.mean(), "low": means.mean() - half, "high": means.mean() + half}
    # the page and the run have scored the cells in two programs
    for selector, expected in (("#course", axis), ("#region", region)):
        element = find(driver, selector)
        drawn = {name: float(element.get_attribute(f"data-{name}")) for name in expected}
        assert drawn == pytest.approx(expected, rel=1e-5)
    assert find(driver, "#region").text.startswith(
        "Region of 25 combinations, 9 of the held-out region."
    )


def test_the_python_that_is_copied_runs(opened, runs, monkeypatch):
    driver = opened("network=tiny&at=4.5,4&region=1,2,3,4")
    find(driver, "#copy").click()
    settle(driver)
    assert find(driver, "#copied").text == "Copied the Python."
    text = find(driver, "#python").text
    assert text.startswith("import compgen_jax as cg\n")
    names = {}
    monkeypatch.chdir(runs["tiny"].path.parent)  # a page names no directory above
    exec(text, names)
    point = np.float32([[4.5, 4]])
    np.testing.assert_array_equal(names["outputs"], runs["tiny"].predict(point))
    assert len(names["region"]) == 2 * 4


def test_a_guess_comes_before_the_drawings(opened, runs):
    driver = opened("network=tiny&at=4,4&guess=1")
    assert "right" not in find(driver, "#sentence b").text
    first = "#grid figure:nth-child(2) canvas.first"
    picture = find(driver, first)
    assert (pixels(driver, first)[..., :3] == 255).all()
    pixel = picture.size["width"] / 8
    actions = ActionChains(driver, duration=0)  # from the middle to column 2 and row 6
    actions.move_to_element_with_offset(picture, -1.5 * pixel, -2.5 * pixel).click().perform()
    settle(driver)
    drawn = runs["tiny"].predict(np.float32([[4, 4]]))[:, 0]
    there = drawn[:, 5:8, 1:4].max(axis=(1, 2)) >= drawn.max(axis=(1, 2)) / 2
    seeds = there.sum()
    words = f"{seeds} of 2 seeds draw there; 0 draw what was asked. Your score: {seeds > 0:d} of 1."
    assert find(driver, "#guess-words").text == words
    mark = find(driver, "#grid figure:nth-child(3) .guess")
    percent = driver.execute_script(
        "return ['left', 'top'].map((end) => parseFloat(arguments[0].style[end]))", mark
    )
    assert percent == pytest.approx([100 * 2.5 / 8, 100 * 1.5 / 8], abs=1)
    assert np.ptp(pixels(driver, first)[..., 0]) > 100
    find(driver, "#next").click()
    assert runs["tiny"].task.held_out(np.float32([state(driver)["at"].split(",")])).all()
    assert (pixels(driver, first)[..., :3] == 255).all()
    find(driver, "#guess").click()
    assert "guess" not in state(driver) and "right" in find(driver, "#sentence b").text


def test_three_factors_are_two_axes_and_a_slider(opened, runs):
    driver, run = opened("network=three factors&at=3,3,1"), runs["three factors"]
    assert find(driver, "#others").text.startswith("size = 1.5")
    put(driver, "#others input", 2)
    assert state(driver)["at"] == "3,3,2" and "size = 2.2" in find(driver, "#sentence").text
    assert_drawn(driver, 2, run, run.predict(np.float32([[3, 3, 2.2]]))[0, 0])
    put(driver, "#axes select", 2, "selectedIndex")
    assert state(driver)["axes"] == "2,1"
    assert find(driver, "#across").text == "size →" and "x = 3" in find(driver, "#others").text


def test_five_factors_in_colour(opened, tiny, tmp_path):
    """Two axes of the map, on which the hold-out depends, and three controls; row 0 on top."""
    run = sprites_run(tiny, tmp_path / "run", side=16)
    path = page.write({"sprites": run}, tmp_path / "explorer.html")
    assert state(opened(page=path))["axes"] == "0,2"
    driver = opened("at=1,1,2,2,0&axes=0,3", page=path)
    assert find(driver, "#across").text == "shape: square, heart →"
    names = [control.get_attribute("name") for control in
             driver.find_elements(By.CSS_SELECTOR, "#others input")]  # fmt: skip
    assert names == ["scale", "hue", "posY"] and not find(driver, "#halves").is_displayed()
    assert find(driver, "#thinned").text == ""  # all 108, though few alone were measured
    assert find(driver, "#sentence").text.startswith(
        "Asked for shape = heart, scale = 1, hue = 0.6667, posX = 1, posY = 0, a combination never"
    )
    outlined = pixels(driver, "#map canvas")
    put(driver, "#others input[name=hue]", 1)
    assert "a combination outside the held-out region" in find(driver, "#sentence").text
    assert (pixels(driver, "#map canvas") != outlined).any()  # of this hue
    shown = pixels(driver, "#grid figure:first-child canvas.first")[..., :3] / 255
    high = max(np.quantile(run.cells.predictions, 0.9995), 1.0)
    point = np.float32([3, 1, 1 / 3, 1, 0])
    image = np.asarray(run.task.example(None, point).target)
    assert image[:8].sum() > image[8:].sum()  # posY = 0 lies above
    np.testing.assert_allclose(shown, image / high, atol=0.03)


def test_a_verdict_leads_to_its_network_and_numbers(opened):
    driver = opened("network=tiny")
    for number in (1, 2):
        verdict, name, *_ = find(driver, f".claim:nth-child({number})").text.split("\n")
        assert (verdict, name) == ("✗ contradicted", f"X{number}, bump")
    circles = driver.find_elements(By.CSS_SELECTOR, ".claim:first-child circle")
    assert len(circles) == 5  # four seeds and their mean
    assert find(driver, ".claim:nth-child(2) text").text == "bound 1.0e+5"
    driver.execute_script("arguments[0].click()", find(driver, ".claim"))
    WebDriverWait(driver, 30).until(lambda d: state(d)["network"] == "three factors")
    evidence = find(driver, ".evidence").text
    assert "must be above 0.5" in evidence and "0.2 to 0.3" in evidence


def test_the_hash_opens_the_same_view(opened):
    place = "network=three+factors&at=2,5,0&step=16&seed=7&score=mse&layer=layer_01&axes=0,1"
    driver = opened(place)
    expected = {"seed": "7", "score": "mse", "layer": "layer_01", "at": "2,5,0"}
    assert expected.items() <= state(driver).items()
    assert find(driver, "#score").get_property("value") == "mse"
    opened("network=none&at=99,-4&seed=5&score=__proto__&axes=0,0&step=3&region=1,9,2,3")
    assert "between" not in find(driver, "#python").text  # the region sticks out of the map
    expected = {"network": "tiny", "at": "7,0", "score": "rendered"}
    assert "region" not in state(driver) and expected.items() <= state(driver).items()


def test_live_codes_are_right_where_the_page_has_cells_alone(opened, runs, tmp_path, monkeypatch):
    monkeypatch.setattr(payload, "DETAILS", payload.DETAILS[-1:])
    coarse, run = page.write({"tiny": runs["tiny"]}, tmp_path / "coarse.html"), runs["tiny"]
    for at in (0, 3, 7):
        driver = opened(f"at={at},{at}", page=coarse)
        drawn, _ = run.predict(np.float32([[at, at]]))
        assert live_sum(driver) == pytest.approx(float(drawn.sum()), abs=64e-4)


MARKUP = "<img src=x onerror=\"document.title='run by a name'\"></script><b class=named>"


def test_no_name_becomes_markup(opened, runs, tmp_path):
    """Names of runs, factors, scores and labels, and what claims say, are text."""
    run, verdict = copy.copy(runs["tiny"]), VERDICT.copy()
    labels = [f"{MARKUP} {value}" for value in range(8)]
    factors = [f._replace(name=f"{f.name}{MARKUP}", labels=labels) for f in run.task.factors]
    run.task = run.task._replace(factors=factors)
    for name in ("claim", "case", "statement", "figure", "verdict", "reason"):
        verdict[name] += MARKUP
    for numbers in ("conditions", "notes"):
        (number,) = verdict[numbers].values()
        verdict[numbers] = {MARKUP: number}
    written = page.write({MARKUP: run}, tmp_path / "named.html", [verdict])
    driver = opened("at=4,4&layer=layer_01", page=written)
    driver.execute_script("arguments[0].click()", find(driver, ".claim"))
    settle(driver)
    assert driver.find_elements(By.CSS_SELECTOR, "img[src=x], .named") == []
    assert driver.title.startswith("Explorer: <img src=x")  # as text: no script has changed it
    assert f"x{MARKUP} = {MARKUP} 4" in find(driver, "#sentence").text  # a label, not its value


OVERLAPS = """
const all = [...document.querySelectorAll("h1, h2, h3, p, label, button, canvas, select, pre")];
const shown = all.filter((each) => each.checkVisibility() && !each.closest("#claims")
  && (each.tagName === "CANVAS" || each.textContent !== ""));
const boxes = shown.map((each) => each.getBoundingClientRect()), found = [];
const name = (each) => `${each.tagName} ${each.id} ${each.textContent.slice(0, 30)}`;
shown.forEach((a, i) => shown.forEach((b, j) => {
  if (j <= i || a.contains(b) || b.contains(a)) return;
  const [one, other] = [boxes[i], boxes[j]];
  const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
  const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
  if (wide > 2 && high > 2) found.push(`${name(a)} / ${name(b)}`);
}));
return [found, document.documentElement.scrollWidth - document.documentElement.clientWidth];
"""


DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844, "touch": True}


@pytest.mark.parametrize("window", [DESKTOP, {"width": 900, "height": 800}, PHONE])
@pytest.mark.parametrize("network", ["tiny&beside=other", "three+factors"])
def test_nothing_overlaps_or_sticks_out(opened, window, network):
    driver = opened(f"network={network}&layer=layer_01", **window)
    driver.execute_script("if (innerWidth < 720) document.getElementById('map').scrollIntoView()")
    settle(driver)
    overlaps, beyond = driver.execute_script(OVERLAPS)
    assert overlaps == [] and beyond <= 0


PLACES = """
const all = "section, figure, canvas, button, p:not(#rules-away), pre, h2, h3";
return [...document.querySelectorAll(all)].map((each) => {
  const { left, top, width, height } = each.getBoundingClientRect();
  return [each.tagName, each.id, each.className, left, top + scrollY, width, height].join(" ");
});
"""


@pytest.mark.parametrize("window", [DESKTOP, PHONE])
def test_dragging_across_the_edge_moves_nothing_and_keeps_the_drawings_in_view(opened, window):
    """By a thumb on a phone, where each picture is at least 90 pixels wide."""
    driver = opened("network=tiny&at=1,4", **window)
    driver.execute_script("if (innerWidth < 720) document.getElementById('map').scrollIntoView()")
    settle(driver)
    left, top, side, _ = box(driver, "#map")
    places, words = driver.execute_script(PLACES), set()
    for place in (1, 2.5, 3, 4.5, 7):
        kind = "Start" if place == 1 else "Move"
        point = {"x": left + (place + 0.5) * side / 8, "y": top + 3.5 * side / 8}
        event = {"type": f"touch{kind}", "touchPoints": [point]}
        driver.execute_cdp_cmd("Input.dispatchTouchEvent", event)
        assert state(driver)["at"] == f"{place:g},4"
        words.add("never shown" in find(driver, "#sentence b").text)
        assert driver.execute_script(PLACES) == places
        for figure in range(1, 4):
            selector = f"#grid figure:nth-child({figure}) canvas"
            _, above, width, height = box(driver, selector)
            assert 0 <= above and above + height <= window["height"] and width >= 90
    driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert words == {True, False}
    assert ("thumb" in find(driver, "#combinations .hint").text) == ("touch" in window)


def test_the_committed_page_judges_as_the_table_of_claims_does(opened):
    driver = opened(page=committed.RESULTS / "quick" / "explorer.html")
    lines, names = driver.execute_script("""
        const lines = [...document.querySelectorAll(".claim")].map((line) => {
          const parts = [...line.firstChild.childNodes, line.querySelector(".reason")];
          return parts.map((each) => each.textContent).filter((text) => text);
        });
        return [lines, [...document.getElementById('network').options].map((each) => each.text)];
    """)
    rows = page.on(committed.rows("quick"), names)
    assert len(rows) > 30 and {"bump_cnn", "stripes_30_bumps", "rotation"} <= {*names}
    for line, row in zip(lines, rows, strict=True):
        name = ", ".join(filter(None, (row["claim"], row["case"])))
        expected = row["verdict"], name, row["reason"]
        assert [line[0][2:], *line[1:]] == [text for text in expected if text]
