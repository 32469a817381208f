"""The page that trains, in Chromium: its arithmetic against JAX, and what a visitor does."""

import json
import math
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.stats import binomtest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

import compgen_jax as cg
from compgen_jax import cli, config
from compgen_jax.metrics.evaluation import region_means
from compgen_jax.tasks import baselines
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop
from figures.explorer import live
from figures.explorer.arrays import encode
from figures.playground import playground_page
from tests.browser.test_explorer import box, find
from tests.figures.live_networks import decode

SETTINGS = {
    "task.grid": 12,
    "task.image.polarity": "upright",
    "task.support.held_out": "3 <= x <= 8 and 3 <= y <= 8",
    "task.support.sampling": "every_cell",
    "training.learning_rate": 3e-3,
}
PIXELWISE = {"model.name": "pixelwise", "model.width": 16, "model.depth": 2}
DECODERS = {
    "cnn": {"model.width": 8, "model.depth": 3},
    "tied": PIXELWISE,
    "untied": PIXELWISE | {"model.shared": False},
    "low rank": {
        "model.name": "lowrank",
        "model.width": 2,
        "model.depth": 2,
        "task.code.name": "onehot",
        "model.penalty.entropy": 1.0,
        "model.penalty.variance": 0.075,
    },
}
BATCH = 10
IN_MODULE = """
const [address, encoded, done] = arguments;
import(address).then(async ({ run }) => done(JSON.stringify(await run(encoded))));
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "playground.html"
    path.write_text(playground_page.text())
    return path


@pytest.fixture
def page(open_page, path):
    """page(...) -> the driver, with the page ready."""

    def opened(**window):
        driver = open_page(path, **window)
        WebDriverWait(driver, 60).until(
            lambda d: d.execute_script("return document.body.dataset.ready")
        )
        return driver

    return opened


@pytest.fixture
def in_module(open_page, tmp_path):
    """in_module(imports, body, argument): what a function's body returns, of its `argument` with
    arrays decoded, in a module that imports some of the page's."""
    (tmp_path / "empty.html").write_text("<!doctype html>")
    driver = open_page(tmp_path / "empty.html")
    scripts = [*playground_page.HERE.glob("*.js"), *live_scripts()]

    def run(imports, body, argument=None):
        module = f"""
        {imports}
        import {{ decodeArrays }} from "arrays";
        export async function run(encoded) {{
          const argument = await decodeArrays(encoded);
          {body}
        }}"""
        address = playground_page.page.address(playground_page.page.bundled(module, scripts))
        return json.loads(driver.execute_async_script(IN_MODULE, address, argument))

    return run


def live_scripts():
    return [playground_page.page.HERE / f"{name}.js" for name in ("arrays", "network", "pictures")]


# --- the arithmetic ---------------------------------------------------------------------------


def operations(settings: config.Config, variables) -> list[dict]:
    """A decoder as network.js runs it, with its penalty."""
    module = settings.model.make(loop.shapes_of(settings.task.make()))
    layers = live.LAYERS[type(module)](module, variables)
    found = [operation for layer in layers for operation in layer]
    found += [live._linear(variables["params"]["image"]), {"op": "reshape", "shape": [12, 12]}]
    if found[0]["op"] == "embed":
        penalty = settings.model.penalty
        found[0]["penalty"] = {"entropy": penalty.entropy, "variance": penalty.variance}
    is_array = lambda value: isinstance(value, np.ndarray | jax.Array)
    return [{name: encode(v) if is_array(v) else v for name, v in op.items()} for op in found]


def parameters(of: list[dict]) -> list:
    """The arrays of operations in the order in which training.js lists them."""
    arrays = []
    for operation in of:
        for factor in operation.get("factors", ()):
            arrays += [factor[name] for name in ("values", "left", "right")]
        names = ("kernel", "bias", "negative_slope")
        arrays += [operation[name] for name in names if name in operation]
    return [decode(array).ravel() for array in arrays]


GRADIENTS = """
const trainer = makeTrainer(argument.operations, argument.codes.shape[1], argument.batch);
const { codes, targets, batch } = argument;
const error = trainer.differentiate(codes.values, targets.values, batch);
const copy = (name) => trainer.parameters.map((parameter) => [...parameter[name]]);
const gradients = copy("gradient");
for (let k = 0; k < 10; k++) trainer.step(codes.values, targets.values, batch, argument);
const outputs = [...trainer.run(codes.values, batch)];
const first = codes.values.subarray(0, codes.shape[1]);
const drawn = [...makeNetwork(argument.operations).draw(first).output];
return { error, gradients, after: copy("values"), outputs, drawn };
"""


@pytest.mark.parametrize("name", DECODERS)
def test_gradients_and_ten_steps_are_those_of_jax(in_module, name):
    settings = config.changed(preset(), SETTINGS | DECODERS[name])
    task, network, hyper = settings.task.make(), loop.Network(settings), loop.hyper_of(settings)
    rng = np.random.default_rng(0)
    shift = lambda leaf: leaf + 0.05 * rng.normal(size=leaf.shape).astype(np.float32)
    params = jax.tree.map(shift, network.init(jax.random.key(1)))
    points = rng.permutation(tasks.cells(task.factors))[:BATCH]
    points[0, 0] = np.nan if name != "tied" else points[0, 0]  # a single-factor image
    examples = tasks.examples_at(task, jax.random.key(0), points)
    strengths = {name.partition(".")[2]: v for name, v in hyper.items() if name[:6] == "model."}

    @partial(jax.value_and_grad, has_aux=True)
    def differentiate(params):
        outputs, _ = network.apply(params, examples.input, 0), None
        error = jnp.mean(network.losses(outputs, examples.target))
        extra = settings.model.extra_loss(params, strengths)
        return error if extra is None else error + extra, error

    (_, error), gradient = differentiate(params)
    optimizer = loop.optimizer(hyper, settings.training)
    trained, state = params, optimizer.init(params)
    for _ in range(10):
        (value, _), slope = differentiate(trained)
        updates, state = optimizer.update(slope, state, trained, value=value)
        trained = optax.apply_updates(trained, updates)

    argument = {
        "operations": operations(settings, params),
        "codes": encode(examples.input),
        "targets": encode(examples.target),
        "batch": BATCH,
        "rate": settings.training.learning_rate,
        "decay": settings.training.weight_decay,
    }
    imports = """import { makeTrainer } from "training"; import { makeNetwork } from "network";"""
    found = in_module(imports, GRADIENTS, argument)
    assert math.isclose(found["error"], error, rel_tol=1e-5)
    for actual, expected in zip(
        found["gradients"], parameters(operations(settings, gradient)), strict=True
    ):
        assert np.linalg.norm(actual - expected) <= 1e-4 * np.linalg.norm(expected) + 1e-9
    for actual, expected in zip(
        found["after"], parameters(operations(settings, trained)), strict=True
    ):
        assert np.linalg.norm(actual - expected) <= 1e-3 * np.linalg.norm(expected)
    # after training, the explorer's forward pass draws the same
    np.testing.assert_allclose(found["drawn"], found["outputs"][:144], atol=1e-4)


def preset() -> config.Config:
    return cli.load_config("bump_cnn_quick", flag="config=")


SCORES = """
const heldOut = Uint8Array.from(argument.held_out.values), { outputs, grid, code } = argument;
const shown = cellsOf(grid).filter((_, cell) => !heldOut[cell]);
const coded = (points) => points.map((point) => [...codeOf(point, grid, code)]);
const drawn = (points) => points.map((point) => [...imageOf(point, grid)]);
const krr = kernelRegression(coded(shown), drawn(shown), coded(cellsOf(grid)));
const { errors, rendered } = scoresOf(outputs.values, grid, heldOut);
const stripes = singleFactor(grid), found = { codes: coded(stripes), images: drawn(stripes) };
return { errors: [...errors], rendered: [...rendered], krr: [...krr], ...found };
"""


@pytest.mark.parametrize("code", ["bump", "onehot", "ramp"])
def test_codes_images_scores_and_kernel_regression_are_those_of_python(in_module, code):
    fields = {"task.code.name": code, "task.stripes.copies": 1}
    fields |= {"task.code.missing": "off_grid"} if code == "ramp" else {}
    task = config.changed(preset(), SETTINGS | fields).task.make()
    cells, held_out = tasks.cells(task.factors), tasks.regions(task)["ood"]
    key = jax.random.key(0)
    codes, images = tasks.examples_at(task, key, cells)
    outputs = np.asarray(images) * np.linspace(0.2, 2.2, 144, dtype=np.float32)[:, None, None]
    outputs += np.random.default_rng(0).normal(0, 0.05, outputs.shape).astype(np.float32)
    outputs[::7] = np.roll(outputs[::7], 1, axis=2)
    argument = {"outputs": encode(outputs), "held_out": encode(held_out), "grid": 12, "code": code}
    names = "cellsOf, codeOf, imageOf, kernelRegression, scoresOf, singleFactor"
    imports = f'import {{ {names} }} from "bumps";'
    found = in_module(imports, SCORES, argument)
    scores = jax.vmap(task.scores)(outputs, images, cells)
    np.testing.assert_allclose(found["errors"], scores["mse"], rtol=1e-4)
    np.testing.assert_array_equal(np.array(found["rendered"], bool), scores["rendered"])
    assert 20 < scores["rendered"].sum() < 124  # right and wrong ones
    expected = baselines.interpolate(codes[~held_out], images[~held_out], codes)
    np.testing.assert_allclose(found["krr"], expected.ravel(), atol=1e-4)
    stripes = task.dataset(key).points[:24]
    codes, images = tasks.examples_at(task, key, stripes)
    np.testing.assert_allclose(found["codes"], codes, atol=1e-6)
    np.testing.assert_allclose(found["images"], np.reshape(images, (24, -1)), atol=1e-6)


def test_new_weights_follow_the_laws_of_the_library(in_module):
    """The same shapes and, of kernels, spreads within 4%; seeds differ, and one seed is itself."""
    body = """
    const arrays = (model, seed) => makeTrainer(makeDecoder({ model, grid: 12 }, 24, seed), 24, 1)
      .parameters.map(({ values }) => [...values]);
    return Object.fromEntries(Object.entries(argument).map(([name, model]) =>
      [name, [0, 1, 0].map((seed) => arrays(model, seed))]));
    """
    wide = {"cnn": {"model.width": 32, "model.depth": 3}, "tied": PIXELWISE | {"model.width": 64}}
    fields, decoders = {}, DECODERS | wide
    for name, of in decoders.items():
        values = {key.removeprefix("model."): value for key, value in of.items() if "." in key}
        values = {key: value for key, value in values.items() if not key.startswith("task")}
        fields[name] = {"name": "conv", "shared": True, "penalty": None} | values
    imports = """import { makeDecoder } from "decoders"; import { makeTrainer } from "training";"""
    found = in_module(imports, body, fields)
    for name, (first, second, again) in found.items():
        settings = config.changed(preset(), SETTINGS | decoders[name])
        networks = jax.vmap(loop.Network(settings).init)(jax.random.split(jax.random.key(0), 8))
        one = jax.tree.map(lambda leaf: np.asarray(leaf)[0], networks)
        assert first == again != second
        for actual, expected in zip(first, parameters(operations(settings, one)), strict=True):
            assert np.shape(actual) == expected.shape
            if len(actual) > 1000:
                assert abs(np.std(actual) / expected.std() - 1) < 0.04
                assert abs(np.mean(actual)) < 4 * expected.std() / math.sqrt(len(actual))


def test_the_interval_is_the_exact_one(in_module):
    body = "return [...Array(9).keys()].map((hits) => exactInterval(hits, 8));"
    found = in_module('import { exactInterval } from "verdict";', body)
    for hits, interval in enumerate(found):
        expected = binomtest(hits, 8).proportion_ci(method="exact")
        np.testing.assert_allclose(interval, expected, atol=1e-9)


# --- what a visitor does ----------------------------------------------------------------------


def text(driver, selector) -> str:
    return find(driver, selector).get_attribute("textContent")


def python(driver) -> dict:
    """The settings of the call that the page gives."""
    return eval(re.search(r"settings = (\{.*?\n\})", text(driver, "#python"), re.S)[1])  # ours


def finished(driver, seconds):
    done = lambda d: d.execute_script("return document.body.dataset.seconds")
    WebDriverWait(driver, seconds).until(done)
    return json.loads(driver.execute_script("return document.body.dataset.ood"))


def region(driver, name):
    buttons = driver.find_elements(By.CSS_SELECTOR, "#regions button")
    next(button for button in buttons if button.text == name).click()


def held_out(driver) -> str:
    return python(driver)["task.support.held_out"]


def press(driver, start, end):
    """Drags over the region's map of 12 x 12, from cell to cell."""
    board = find(driver, "#region")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", board)
    cell = np.array([board.size["width"], -board.size["height"]]) / 12
    first, last = ((np.array([start, end]) - 5.5) * cell).round().astype(int).tolist()
    actions = ActionChains(driver, duration=50).move_to_element_with_offset(board, *first)
    actions.click_and_hold().move_to_element_with_offset(board, *last).release().perform()


def test_a_region_is_drawn_by_mouse_and_keyboard(page):
    driver = page()
    [clear] = [
        b for b in driver.find_elements(By.CSS_SELECTOR, "#regions button") if b.text == "clear"
    ]
    clear.click()
    assert find(driver, "#train").get_attribute("disabled") and "Draw a region" in text(
        driver, "#why"
    )
    press(driver, (2, 3), (2, 3))
    assert held_out(driver) == "x == 2 and y == 3"
    press(driver, (4, 3), (5, 3))
    assert held_out(driver) == "x in (2, 4, 5) and y == 3"
    press(driver, (4, 3), (4, 3))  # the brush takes away where it begins on what is held out
    assert held_out(driver) == "x in (2, 5) and y == 3"
    ActionChains(driver).send_keys(Keys.ARROW_UP, Keys.ARROW_RIGHT, Keys.SPACE).perform()
    assert held_out(driver) == "(x in (2, 5) and y == 3) or (x == 5 and y == 4)"
    assert "3 of 144" in text(driver, "#count")


def test_a_region_is_drawn_by_touch_on_a_phone(page):
    driver = page(width=390, height=844, touch=True)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
    region(driver, "square")
    center = "arguments[0].scrollIntoView({ block: 'center' })"
    driver.execute_script(center, find(driver, "#region"))
    left, top, width, height = box(driver, "#region")
    at = lambda x, y: {
        "x": left + (x + 0.5) * width / 12,
        "y": top + (11.5 - y) * height / 12,
    }
    for kind, points in (("touchStart", [at(0, 0)]), ("touchMove", [at(1, 0)]), ("touchEnd", [])):
        driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    square = "3 <= x <= 8 and 3 <= y <= 8"
    assert held_out(driver) == f"(0 <= x <= 1 and y == 0) or ({square})"


@pytest.mark.parametrize("name", ["square", "corner", "random", "cross"])
def test_the_sentence_of_a_region_holds_out_what_is_drawn(page, name):
    driver = page()
    region(driver, name)
    task = config.changed(preset(), python(driver)).task.make()
    count = int(re.match(r"\d+", text(driver, "#count"))[0])
    assert tasks.regions(task)["ood"].sum() == count > 10


def test_a_guess_trains_to_a_verdict_that_agrees_with_the_library(page, tmp_path):
    """The tour's second step: the networks of the page and of `cg.train`, by the code that the page
    gives, are right on as many held-out positions."""
    driver = page()
    find(driver, "#tour-next").click()
    find(driver, "#guesses button:nth-child(1)").click()
    shares = finished(driver, 400)
    assert len(shares) == 8 and "8 networks are right" in text(driver, "#verdict")
    assert "You guessed at most 1 of 8" in text(driver, "#tour-after")
    run = cg.train("bump_cnn_quick", tmp_path / "run", python(driver), progress=False)
    hits = run.cells.scores["rendered"][:, run.cells.held_out].mean(axis=1)
    of_page, of_run = np.sum(np.array(shares) > 0.9), np.sum(hits > 0.9)
    low, high = binomtest(int(of_run), 8).proportion_ci(method="exact")
    assert low <= of_page / 8 <= high
    interval = run.summary["mean"]["ood.rendered"]["ci95"]
    slack = 0.02 + (interval[1] - interval[0])
    assert interval[0] - slack <= np.mean(shares) <= interval[1] + slack
    masks = {"ood": run.cells.held_out}
    krr = region_means({"rendered": run.interpolator.scores["rendered"][0]}, masks)["ood.rendered"]
    shown = float(driver.execute_script("return document.body.dataset.baseline"))
    assert abs(shown - krr) < 0.03


def test_the_tour_sets_the_page(page):
    driver = page()
    titles, decoders = [], []
    for _ in range(6):
        titles.append(text(driver, "#tour-title"))
        decoders.append(python(driver)["model.name"])
        assert len(text(driver, "#tour-words").split()) <= 26
        assert len(driver.find_elements(By.CSS_SELECTOR, "#guesses button")) == 3
        find(driver, "#tour-next").click()
    assert decoders == ["conv", "conv", "conv", "lowrank", "pixelwise", "pixelwise"]
    assert titles[0] == text(driver, "#tour-title")  # once round


def test_it_pauses_while_the_page_is_hidden(page):
    driver = page()
    find(driver, "#train").click()
    progress = lambda: re.search(r"step (\d+)", text(driver, "#progress-words"))
    steps = lambda: int(progress()[1]) if progress() else 0
    WebDriverWait(driver, 60).until(lambda d: steps() > 0)
    hide = """Object.defineProperty(document, "hidden", { value: %s, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));"""
    captions = "return [...document.querySelectorAll('#maps figcaption')].map((f) => f.textContent)"
    driver.execute_script(hide % "true")
    assert "paused" in text(driver, "#progress-words")
    driver.execute_async_script("setTimeout(arguments[0], 3000)")  # what was on its way arrives
    maps = driver.execute_script(captions)
    driver.execute_async_script("setTimeout(arguments[0], 3000)")
    again = driver.execute_script(captions)
    assert maps == again and "paused" in text(driver, "#progress-words")
    driver.execute_script(hide % "false")
    before = steps()
    WebDriverWait(driver, 60).until(lambda d: steps() > before)
    find(driver, "#train").click()
    assert text(driver, "#train") == "Train eight networks"
