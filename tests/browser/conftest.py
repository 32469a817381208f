"""Chromium without a window, driven by selenium. `make test-browser` runs these tests.

Pages are opened from disk, as a reader opens them, and no host can be reached from them.
"""

from pathlib import Path

import pytest

from tests.browser import chromium as browser


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """selenium's driver of one headless Chromium. Without Chromium the whole run of tests ends
    here, with one line: it must not pass because nothing was tried."""
    try:
        driver = browser.start(tmp_path_factory.mktemp("chromium"))
    except FileNotFoundError as missing:
        pytest.exit(f"the browser tests need Chromium: {missing}", 1)
    driver.set_script_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture
def open_page(chromium):
    """open_page(path, width=1280, height=800, touch=False) -> the driver, with that file opened in
    a window whose inside has this size, or on a phone. `path` may end in '#' and a hash.

    A test fails if its page has logged an error by the end: an exception, or a file not found.
    """

    def opened(path, width=1280, height=800, touch=False):
        browser.resize(chromium, width, height, touch)
        scheme = {"name": "prefers-color-scheme", "value": "light"}
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        file, _, place = str(path).partition("#")
        chromium.get("about:blank")  # so that a change of the hash alone loads the page, too
        chromium.get(Path(file).absolute().as_uri() + (f"#{place}" if place else ""))
        return chromium

    chromium.get_log("browser")  # forgets what earlier pages logged
    yield opened
    errors = [entry["message"] for entry in chromium.get_log("browser")
              if entry["level"] == "SEVERE"]  # fmt: skip
    assert not errors, errors
