"""Notebooks as files: where they are, what code they have, which results they read."""

from __future__ import annotations

import ast
import json
from pathlib import Path

from decima.core.errors import ConfigError
from experiments.params import checkout

PUBLISHED = "published"  # tag of a cell that shows a figure of reports/results


def notebooks_folder() -> Path:
    """``notebooks/`` of the checkout."""
    return checkout() / "notebooks"


def notebook_slugs() -> list[str]:
    """Ordered names of the notebooks on papers, without ``00-start-here``, which depends on no run."""
    return sorted(path.stem for path in notebooks_folder().glob("[!.]*/[0-9]*.ipynb"))


def notebook_path(slug: str) -> Path:
    """File of a notebook, in the folder of its paper.

    Raises:
        ConfigError: There is no such notebook.
    """
    names = (f"{slug}.ipynb", f"*/{slug}.ipynb")
    path = next((path for name in names for path in notebooks_folder().glob(name)), None)
    if path is None:
        raise ConfigError(f"unknown notebook {slug!r}; known: {', '.join(notebook_slugs())}")
    return path


def notebook_cells(slug: str) -> list[dict]:
    """Cells of a notebook but for those that show published figures."""
    cells = json.loads(notebook_path(slug).read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if PUBLISHED not in cell["metadata"].get("tags", ())]


def code_of(cells: list[dict]) -> str:
    """Code of all cells of a notebook."""
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def notebook_code(slug: str) -> str:
    """Code of all cells of a notebook of a name."""
    return code_of(notebook_cells(slug))


def calls(code: str, function: str) -> list[str]:
    """First arguments of the calls of a function, each once."""
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return list(dict.fromkeys(call.args[0].value for call in nodes if ast.unparse(call.func) == function))
