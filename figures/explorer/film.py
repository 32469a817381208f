"""Makes docs/explorer.gif, a moving picture of the committed explorer, in headless Chromium.

    python -m figures.explorer.film

A pointer drags from positions that training showed into the held-out square; then it guesses.
"""

import io
import shutil
import tempfile

import numpy as np
from PIL import Image, ImageDraw

from .. import committed

PAGE, FILM = committed.RESULTS / "quick" / "explorer.html", committed.ROOT / "docs" / "explorer.gif"
SIZE, PAUSE, COLORS = (800, 620), 100, 48  # pixels, milliseconds
PATH = (1, 2), (5, 13), (7.5, 7.5), (10, 9), (13.5, 2), (8, 5)  # over the map, in cells
POINTER = np.array([(0, 0), (0, 19), (5, 15), (8, 22), (12, 20), (9, 13), (15, 13)])
# a container's root has no sandbox, and its /dev/shm is small
FLAGS = (
    *"--headless=new --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage".split(),
    *"--no-first-run --disable-background-networking --disable-component-update".split(),
    *"--disable-sync --force-device-scale-factor=1 --force-color-profile=srgb".split(),
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


def start(profile):
    """selenium's driver of a headless Chromium that reaches no host. Raises FileNotFoundError, with
    one line, where Chromium or its driver is missing."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    paths = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in paths:
        raise FileNotFoundError("apt-get install chromium chromium-driver")
    options.binary_location = paths[0]
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    return webdriver.Chrome(options, webdriver.ChromeService(paths[1]))


class Film:
    """Frames of what a window shows, with a pointer."""

    def __init__(self, driver):
        self.driver, self.frames, self.at = driver, [], np.zeros(2)
        size = {"width": SIZE[0], "height": SIZE[1], "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def place(self, selector: str, across: float = 0.5, down: float = 0.5):
        """Pixels from the window's left and top, for shares of an element's width and height."""
        script = "return document.querySelector(arguments[0]).getBoundingClientRect().toJSON()"
        box = self.driver.execute_script(script, selector)
        left, top, width, height = (box[name] for name in ("left", "top", "width", "height"))
        return np.array([left + across * width, top + down * height])

    def show(self, kind: str = "Moved", hold: int = 1):
        x, y = map(float, self.at)
        event = {"type": f"mouse{kind}", "x": x, "y": y, "button": "left", "clickCount": 1}
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)
        self.driver.execute_async_script("setTimeout(arguments[0], 120)")
        frame = Image.open(io.BytesIO(self.driver.get_screenshot_as_png())).convert("RGB")
        pointer = [tuple(each) for each in POINTER + self.at]
        ImageDraw.Draw(frame).polygon(pointer, "black", "white")
        self.frames += [frame] * hold

    def move(self, to, steps: int = 10):
        for at in np.linspace(self.at, to, steps + 1)[1:]:
            self.at = at
            self.show()

    def click(self, selector: str, across: float = 0.5, down: float = 0.5, hold: int = 12):
        self.move(self.place(selector, across, down))
        self.show("Pressed")
        self.show("Released", hold)


def main():
    with tempfile.TemporaryDirectory() as profile:
        driver = start(profile)
        film = Film(driver)
        driver.get(f"{PAGE.as_uri()}#network=bump_cnn&at=1,2")
        film.driver.execute_async_script("setTimeout(arguments[0], 3000)")
        stops = [film.place("#map", (x + 0.5) / 16, 1 - (y + 0.5) / 16) for x, y in PATH]
        film.at = stops[0]
        film.show("Pressed", 4)
        for stop in stops[1:]:
            film.move(stop)
        film.show("Released", 6)
        film.click("#guess")
        film.click("#grid figure:nth-child(3) canvas", 0.5, 0.5, hold=18)
        driver.quit()
    first, *others = (frame.quantize(COLORS, dither=Image.Dither.NONE) for frame in film.frames)
    first.save(FILM, save_all=True, append_images=others, duration=PAUSE, loop=0)
    print(f"wrote {FILM}: {1 + len(others)} frames, {FILM.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
