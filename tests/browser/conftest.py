"""Chromium without a window, driven by selenium. `make test-browser` runs these tests.

Pages are opened from disk, as a reader opens them, and no host can be reached from them.
"""

import shutil
from pathlib import Path

import pytest

# a container's root has no sandbox, and its /dev/shm is small
FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage
--no-first-run --disable-background-networking --disable-component-update --disable-sync
--force-device-scale-factor=1 --force-color-profile=srgb""".split()
LIGHT = [{"name": "prefers-color-scheme", "value": "light"}]


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """selenium's driver of one headless Chromium. Without Chromium the whole run of tests ends
    here, with one line: it must not pass because nothing was tried."""
    from selenium import webdriver

    chromium, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if not (chromium and driver):
        pytest.exit("the browser tests need: apt-get install chromium chromium-driver", 1)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    profile = f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"
    for flag in (*FLAGS, "--host-resolver-rules=MAP * ~NOTFOUND", profile):
        options.add_argument(flag)
    driver = webdriver.Chrome(options, webdriver.ChromeService(driver))
    driver.set_script_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture
def open_page(chromium):
    """open_page(path, width=1280, height=800, touch=False) -> the driver, with that file opened in
    a window whose inside has this size, or on a phone. `path` may end in '#' and a hash.

    A test fails if its page has logged an error by the end: an exception, or a file not found.
    """
    send = chromium.execute_cdp_cmd

    def opened(path, width=1280, height=800, touch=False):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": touch}
        send("Emulation.setDeviceMetricsOverride", size)
        send("Emulation.setTouchEmulationEnabled", {"enabled": touch})
        send("Emulation.setEmulatedMedia", {"features": LIGHT})
        file, _, place = str(path).partition("#")
        chromium.get("about:blank")  # so that a change of the hash alone loads the page, too
        chromium.get(Path(file).absolute().as_uri() + (f"#{place}" if place else ""))
        return chromium

    chromium.get_log("browser")  # forgets what earlier pages logged
    yield opened
    errors = [entry for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"]
    assert not errors, errors
