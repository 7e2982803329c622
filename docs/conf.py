"""Settings of Sphinx for the site; ``make site`` builds it, and ``experiments.site`` calls Sphinx.

Sources are the files of the repository where they lie, so that a link which leads somewhere on a code host leads
somewhere here. Notebooks are read as a run executed them.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))
# Compiled functions are documented as the functions that they are written as.
os.environ["NUMBA_DISABLE_JIT"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import mermaidx  # noqa: E402
import nbformat  # noqa: E402
from docutils import nodes  # noqa: E402
from docutils.parsers.rst import Directive  # noqa: E402
from latex2mathml.converter import convert  # noqa: E402

from decima import __version__  # noqa: E402

project = "decima-sched"
author = "The decima-sched authors"
version = release = __version__
html_title = "Decima: learned scheduling"

# Folder with executed notebooks, and the only pages to build; empty: all.
EXECUTED = os.environ.get("DECIMA_SITE_NOTEBOOKS", "")
PAGES = os.environ.get("DECIMA_SITE_PAGES", "").split()
# Other versions of the site, each as NAME=PATH from the root of this one.
VERSIONS = [each.split("=") for each in os.environ.get("DECIMA_SITE_VERSIONS", "").split()]

extensions = [
    "myst_nb",
    "sphinx.ext.apidoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinxcontrib.typer",
]
root_doc = "docs/index"
include_patterns = PAGES or [
    "docs/**",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "notebooks/**",
    "models/README.md",
    "data/spark/README.md",
    "reports/results/*/README.md",
]
exclude_patterns = [".*", "build", "dist", "src", "tests", "runs", "**/.ipynb_checkpoints"]
templates_path = ["_templates"]
# A reference that leads nowhere is a warning, and `make site` fails on it; tests/unit/test_docstrings.py finds it
# sooner. Left out: classes and data of other packages, which have no pages here, and what Napoleon takes for a type in
# the summary of a property.
# Names such as `jobs` stand in several packages; a short reference to one of them may lead to any.
suppress_warnings = ["ref.python"]
nitpicky = True
nitpick_ignore_regex = [
    ("py:class|py:data", ".*"),
    ("py:mod", "copy|pickle"),
    ("py:obj", r"decima\.core\.registry\.Member"),
    ("py:func", r"json\..*"),
    ("py:exc", r"grpc\..*|ResetNeeded"),
]

# ---- pages and notebooks -------------------------------------------------------------------------------------------

myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_digits = False  # "$1 and $2" are amounts
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 4
nb_execution_mode = "off"
nb_merge_streams = True
nb_ipywidgets_js = {}
html_math_renderer = "mathml"

# ---- reference from docstrings -------------------------------------------------------------------------------------

reference = [
    {
        "path": str(ROOT / "src" / "decima"),
        "destination": "docs/api",
        # Generated code, and a module that only says its present name.
        "exclude_patterns": [
            str(ROOT / "src" / "decima" / each) for each in ("connect/service/scheduler_pb2*", "systems/unequal.py")
        ],
        "separate_modules": False,
        "module_first": True,
        "automodule_options": {"members", "show-inheritance"},
    }
]
apidoc_modules = [] if PAGES else reference
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"exclude-members": "set"}  # which Matplotlib gives to every kind of artist
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

# ---- look ----------------------------------------------------------------------------------------------------------

html_theme = "furo"
html_static_path, html_css_files = ["_static"], ["site.css"]
html_additional_pages = {"index": "start.html"}
html_context = {"versions": VERSIONS}
html_show_sourcelink = html_show_copyright = False


# What a search finds at a page first of all, whatever words others have.
FOUND = {
    "README": ["install", "installation", "citation", "gallery"],
    "docs/capacity": ["capacity", "number of executors"],
    "docs/event-logs": ["event log", "event logs", "dynamic allocation"],
    "docs/service": ["deployment"],
    "docs/write-a-scheduler": ["custom scheduler", "own scheduler"],
    "docs/another-network": ["custom network", "own network"],
}


def executed(app, docname: str, source: list[str]) -> None:
    """Put the executed notebook in the place of the committed one, alternative texts where MyST-NB looks for them.

    Pages get the entries of the search index that are theirs.

    Pages of the reference are left out of the search for words, which would find little else; their names are found.
    """
    if docname.startswith("docs/api/"):
        source[0] = f":nosearch:\n\n{source[0]}"
    for entry in FOUND.get(docname, []):
        source[0] = f"```{{index}} ! {entry}\n```\n\n{source[0]}"
    if not docname.startswith("notebooks/"):
        return
    committed = Path(app.srcdir, f"{docname}.ipynb")
    if not committed.is_file():
        return
    path = Path(EXECUTED, committed.name)
    notebook = nbformat.read(path if EXECUTED and path.is_file() else committed, as_version=4)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                alt = output.metadata.get("image/png", {}).get("alt", "figure that the cell above draws")
                cell.metadata["mystnb"] = {"image": {"alt": alt}}
    source[0] = nbformat.writes(notebook)


class Diagram(Directive):
    """A Mermaid diagram, drawn when the page is built: the page asks no server for a script."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The diagram as SVG whose identifiers are its own."""
        svg = mermaidx.render("\n".join(self.content)).svg().replace("my-svg", f"diagram-{self.lineno}")
        return [nodes.raw("", f'<div class="diagram">{svg}</div>', format="html")]


def equation(translator, node: nodes.Element) -> None:
    """Write an equation as MathML, which browsers draw themselves; the number of an equation stands beside it."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    written = convert(node.astext().replace(r"\tag", r"\qquad\tag"), display=display)
    translator.body.append(f'<div class="equation">{written}</div>' if display == "block" else written)
    raise nodes.SkipNode


def setup(app) -> None:
    """Connect what this file adds to Sphinx."""
    app.connect("source-read", executed)
    app.add_directive("mermaid", Diagram)
    app.add_html_math_renderer("mathml", (equation, None), (equation, None))
