"""Every notebook in JupyterLab, as `make lab` starts it, in a browser: pictures, links, warnings, the console."""

import os
import re
import subprocess
import time
from pathlib import Path

import nbformat
import pytest

from tests.notebooks.test_sources import NOTEBOOKS

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
# Without a kernel, which would take longer than all else and shows nothing.
LAB_IS_THERE = """
if (!window.jupyterapp?.commands.hasCommand("docmanager:open")) return false
jupyterapp.serviceManager.sessions.startNew = () => new Promise(() => {})
return true
"""
OPEN = """
const opened = jupyterapp.commands.execute("docmanager:open", {path: arguments[0]})
return opened.then((widget) => { window.opened = widget; return 0 })
"""
CLOSE = "window.opened.dispose()"
# Whether all cells of the open notebook are on the page, those of text as text, and all pictures have been asked for.
SHOWN = """
const cells = [...document.querySelectorAll(".jp-NotebookPanel .jp-Cell")]
const text = cells.filter((cell) => cell.classList.contains("jp-MarkdownCell"))
return cells.length === arguments[0] && text.every((cell) => cell.querySelector(".jp-RenderedMarkdown *"))
  && [...document.querySelectorAll(".jp-NotebookPanel img")].every((image) => image.complete)
"""
FAULTS = """
const all = (selector) => [...document.querySelectorAll(".jp-NotebookPanel " + selector)]
return [
  ...all("img").filter((image) => !image.naturalWidth).map((image) => image.alt || image.src),
  ...all("[data-mime-type$='stderr'], mjx-merror, .jp-mod-warning").map((each) => each.innerText || each.className),
]
"""
LINKS = """
const found = [...document.querySelectorAll(".jp-NotebookPanel .jp-RenderedHTMLCommon a[href]")]
const own = found.map((link) => new URL(link.href)).filter((link) => link.origin === location.origin)
return own.filter((link) => link.pathname !== location.pathname).map((link) => decodeURIComponent(link.pathname))
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory, chromium):
    """The browser in JupyterLab; nothing of the user's settings, no kernel is started."""
    home = tmp_path_factory.mktemp("jupyter")
    recipe = subprocess.run(["make", "--dry-run", "lab"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (command,) = re.findall(r"^\S+/jupyter lab .*", recipe, re.MULTILINE)
    options = ["--no-browser", "--allow-root", "--expose-app-in-browser", "--port=0", "--IdentityProvider.token="]
    options.append(f"--FileCheckpoints.checkpoint_dir={home / 'checkpoints'}")
    folders = {f"JUPYTER_{each}_DIR": str(home / each) for each in ("CONFIG", "DATA", "RUNTIME")}
    variables = os.environ | folders | {"HOME": str(home)}
    with (home / "log").open("w") as log:
        server = subprocess.Popen([*command.split(), *options], cwd=ROOT, env=variables, stderr=log)
    try:
        while not (address := re.search(r"http://127\.0\.0\.1:\d+/", (home / "log").read_text())):
            assert server.poll() is None, (home / "log").read_text()
            time.sleep(0.1)
        chromium.get(f"{address[0]}lab?reset")
        chromium.wait(lambda driver: driver.execute_script(LAB_IS_THERE))
        chromium.get_log("browser")
        yield chromium
    finally:
        server.terminate()
        server.wait()
        chromium.get("about:blank")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_no_fault(path, lab):
    before = path.read_bytes()
    lab.execute_script(OPEN, path.relative_to(ROOT).as_posix())
    cells = nbformat.read(path, as_version=4).cells
    lab.wait(lambda driver: driver.execute_script(SHOWN, len(cells)))
    faults = lab.execute_script(FAULTS)
    links = lab.execute_script(LINKS)
    faults += [link for link in links if not (ROOT / link.removeprefix("/files/")).exists()]
    lab.execute_script(CLOSE)
    faults += [entry["message"] for entry in lab.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    assert faults == []
    assert path.read_bytes() == before
