"""Writes the playground: one page that trains small decoders in a browser, and loads nothing."""

from pathlib import Path

from ..explorer import page

HERE = Path(__file__).parent
STYLES = (page.HERE, "style.css"), (HERE, "playground.css")


def text() -> str:
    """The page."""
    scripts = [*HERE.glob("*.js"), page.HERE / "pictures.js"]
    worker = page.bundled('import { listen } from "worker"; listen(self);', scripts)
    return page.render(
        HERE / "playground.html.jinja",
        "".join((folder / name).read_text() for folder, name in STYLES),
        scripts,
        worker=page.as_json(page.address(worker)),
    )
