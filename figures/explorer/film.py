"""Makes docs/explorer.gif, a moving picture of the committed explorer, in headless Chromium.

    python -m figures.explorer.film

A pointer drags from positions that training showed into the held-out square; then it guesses.
"""

import io
import tempfile

import numpy as np
from PIL import Image, ImageDraw

from .. import committed
from . import browser

PAGE, FILM = committed.RESULTS / "quick" / "explorer.html", committed.ROOT / "docs" / "explorer.gif"
WINDOW, SHOWN, MILLISECONDS = (1080, 640), (800, 474), 100
PATH = (1, 2), (5, 13), (7.5, 7.5), (10, 9), (13.5, 2), (8, 5)  # over the map, in cells
POINTER = np.array([(0, 0), (0, 25), (7, 19), (11, 29), (16, 27), (12, 17), (20, 17)])


def film(driver) -> list:
    """Images of what the window shows, ten for each second, with a pointer."""
    frames, at = [], np.zeros(2)  # where the pointer is

    def place(selector, across=0.5, down=0.5):
        left, top, width, height = browser.box(driver, selector)
        return np.array([left + across * width, top + down * height])

    def show(kind, hold=1):
        event = {"x": float(at[0]), "y": float(at[1]), "button": "left", "clickCount": 1}
        driver.execute_cdp_cmd("Input.dispatchMouseEvent", event | {"type": f"mouse{kind}"})
        driver.execute_async_script("setTimeout(arguments[0], 150)")
        frame = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
        pointer = [tuple(corner) for corner in POINTER + at]
        ImageDraw.Draw(frame).polygon(pointer, "black", "white", width=2)
        frames.extend([frame.resize(SHOWN, Image.Resampling.LANCZOS)] * hold)

    def move(to, steps=9):
        start = at.copy()
        for share in np.linspace(0, 1, steps + 1)[1:]:
            at[:] = start + share * (to - start)
            show("Moved")

    browser.resize(driver, *WINDOW)
    driver.get(f"{PAGE.as_uri()}#network=bump_cnn&at=1,2")
    driver.execute_async_script("setTimeout(arguments[0], 3000)")
    driver.execute_script("Math.random = () => 0.55")  # the combination to guess: x = 8, y = 8
    at[:], *stops = (place("#map", (x + 0.5) / 16, 1 - (y + 0.5) / 16) for x, y in PATH)
    show("Pressed", 4)
    for stop in stops:
        move(stop)
    show("Released", 6)
    for target in (("#guess",), ("#grid figure:nth-child(3) canvas", 0.93, 0.45)):
        move(place(*target), 7)
        show("Pressed")
        show("Released", 14)
    return frames


def main():
    with tempfile.TemporaryDirectory() as profile:
        driver = browser.start(profile)
        frames = film(driver)
        driver.quit()
    every = Image.fromarray(np.concatenate(frames[::9]))  # which share one palette
    palette = every.quantize(256, Image.Quantize.MAXCOVERAGE)
    images = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in frames]
    images[0].save(FILM, save_all=True, append_images=images[1:], duration=MILLISECONDS, loop=0)
    print(f"wrote {FILM}: {len(frames)} frames, {FILM.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
