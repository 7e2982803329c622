"""Notebooks as files: where they are, what code they have, which results they read."""

from __future__ import annotations

import ast
import json
from pathlib import Path

from experiments.params import checkout


def notebooks_folder() -> Path:
    """``notebooks/`` of the checkout."""
    return checkout() / "notebooks"


def notebook_slugs() -> list[str]:
    """Names of the notebooks on papers, in their order; ``00-start-here`` depends on no run and is not among them."""
    return sorted(path.stem for path in notebooks_folder().glob("[0-9]*.ipynb") if not path.stem.startswith("00-"))


def notebook_code(slug: str) -> str:
    """Code of all cells of a notebook."""
    cells = json.loads((notebooks_folder() / f"{slug}.ipynb").read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def calls(code: str, function: str) -> list[str]:
    """First arguments of the calls of a function, each once."""
    found = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return list(dict.fromkeys(call.args[0].value for call in found if ast.unparse(call.func) == function))
