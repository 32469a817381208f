"""Chromium without a window, driven by selenium. `make test-browser` runs these tests.

Pages are opened from disk, as a reader opens them, and no host can be reached from them.
"""

import shutil
from pathlib import Path

import pytest

NEEDED = "chromium", "chromedriver"
# a container's root has no sandbox, and its /dev/shm is small
FLAGS = (
    *"--headless=new --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage".split(),
    *"--no-first-run --disable-background-networking --disable-component-update".split(),
    *"--disable-sync --force-device-scale-factor=1 --force-color-profile=srgb".split(),
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """selenium's driver of one headless Chromium. Without Chromium the whole run of tests ends
    here, with one line: it must not pass because nothing was tried."""
    from selenium import webdriver

    programs = [shutil.which(name) for name in NEEDED]
    if None in programs:
        missing = NEEDED[programs.index(None)]
        message = f"the browser tests need {missing}: apt-get install chromium chromium-driver"
        pytest.exit(message, 1)
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options, webdriver.ChromeService(programs[1]))
    driver.set_script_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture
def open_page(chromium):
    """open_page(path, width=1280, height=800) -> the driver, with that file opened in
    a window whose inside has this size. `path` may end in '#' and a hash.

    A test fails if its page has logged an error by the end: an exception, or a file not found.
    """

    def opened(path, width=1280, height=800):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
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
