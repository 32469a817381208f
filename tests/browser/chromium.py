"""A headless Chromium."""

import shutil

# a container's root has no sandbox, and its /dev/shm is small
FLAGS = (
    *"--headless=new --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage".split(),
    *"--no-first-run --disable-background-networking --disable-component-update".split(),
    *"--disable-sync --force-device-scale-factor=1 --force-color-profile=srgb".split(),
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


def start(profile):
    """selenium's driver of a Chromium that reaches no host; `profile`: a directory for it. Raises
    FileNotFoundError, which says what to install, where Chromium or its driver is missing."""
    from selenium import webdriver

    chromium, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if not (chromium and driver):
        raise FileNotFoundError("apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    return webdriver.Chrome(options, webdriver.ChromeService(driver))


def resize(driver, width: int, height: int, touch: bool = False):
    """Gives the window's inside a size, of a phone if it is touched."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": touch}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": touch})


def box(driver, selector: str) -> tuple:
    """Left, top, width and height of an element, in pixels of the window."""
    script = "return document.querySelector(arguments[0]).getBoundingClientRect().toJSON()"
    found = driver.execute_script(script, selector)
    return tuple(found[name] for name in ("left", "top", "width", "height"))
