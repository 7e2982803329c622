"""The site: documentation, executed notebooks and the reference, as pages that Sphinx makes (``docs/conf.py``)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from decima.core.errors import ConfigError, DecimaError
from experiments.notebooks import notebook_slugs
from experiments.params import checkout, resolve_run, run_folder, run_names


def build_site(run: str = "auto", out: str | Path = "build/site", versions: bool = False) -> Path:
    """Build the site.

    Args:
        run: Whose executed notebooks are shown; ``"auto"``: of the first run in ``params.yaml`` that has all of them,
            and where there is none the committed ones, which show the published figures and tables.
        out: Folder of the pages, relative to the checkout.
        versions: Whether the pages of every tag ``v...`` are also built, in folders of their names, with the notebooks
            that it has; the pages of every version name the others.

    Returns:
        The page to begin with.

    Raises:
        ConfigError: There is no such run, or its notebooks were not executed.
        DecimaError: Sphinx reported an error or a warning; its messages stand on stderr.
    """
    runs = run_names() if run == "auto" else [resolve_run(run)]
    complete = [name for name in runs if not _missing(name)]
    if not complete and run != "auto":
        raise ConfigError(
            f"run {runs[0]} does not have all executed notebooks in reports; run: decima notebook all --run {runs[0]}"
        )
    target = checkout() / out
    executed = run_folder(complete[0]) / "notebooks" if complete else ""
    tags = _git("tag", "--list", "v*", "--sort=-v:refname").split() if versions else []
    _build(checkout(), target, executed, [f"{tag}={tag}/" for tag in tags])
    for tag in tags:
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder, tag)
            _git("worktree", "add", "--detach", str(tree), tag)
            try:
                _build(tree, target / tag, "", ["newest=../"])
            finally:
                _git("worktree", "remove", "--force", str(tree))
    return target / "index.html"


def _build(tree: Path, target: Path, executed: Path | str, others: list[str]) -> None:
    """Let Sphinx make the pages of one version, which name the others."""
    environment = sphinx_environment(executed) | {"DECIMA_SITE_VERSIONS": " ".join(others)}
    if subprocess.run(sphinx_command(target), cwd=tree, env=environment, check=False).returncode != 0:
        raise DecimaError("the site was not built without warnings; Sphinx says above what is wrong where")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=checkout(), check=True, capture_output=True, text=True).stdout


def sphinx_command(target: Path) -> list[str]:
    """Command, run in the checkout, that makes the pages; warnings count as errors."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-c", "docs"]
    return [*command, "-d", f"{target}.doctrees", ".", str(target)]


def sphinx_environment(notebooks: Path | str) -> dict[str, str]:
    """Environment of that command: ``docs/conf.py`` reads executed notebooks from a folder, if there is one."""
    return os.environ | {"DECIMA_SITE_NOTEBOOKS": str(notebooks)}


def _missing(run: str) -> list[str]:
    """Names of the notebooks on papers that a run has not executed."""
    return [slug for slug in notebook_slugs() if not (run_folder(run) / "notebooks" / f"{slug}.ipynb").is_file()]
