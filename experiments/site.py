"""The site: documentation, executed notebooks and the reference, as pages that Sphinx makes (``docs/conf.py``)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from decima.core.errors import ConfigError, DecimaError
from experiments.notebooks import notebook_slugs
from experiments.params import checkout, resolve_run, run_folder, run_names


def build_site(run: str = "auto", out: str | Path = "build/site") -> Path:
    """Build the site.

    Args:
        run: Whose executed notebooks are shown; ``"auto"``: of the first run in ``params.yaml`` that has all of them,
            and where there is none the committed ones, which show the published figures and tables.
        out: Folder of the pages, relative to the checkout.

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
    environment = sphinx_environment(run_folder(complete[0]) / "notebooks" if complete else "")
    if subprocess.run(sphinx_command(target), cwd=checkout(), env=environment, check=False).returncode != 0:
        raise DecimaError("the site was not built without warnings; Sphinx says above what is wrong where")
    return target / "index.html"


def sphinx_command(target: Path) -> list[str]:
    """Words of the command that makes the pages, to be run in the checkout; warnings count as errors."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-c", "docs"]
    return [*command, "-d", f"{target}.doctrees", ".", str(target)]


def sphinx_environment(notebooks: Path | str) -> dict[str, str]:
    """Environment of that command: ``docs/conf.py`` reads executed notebooks from a folder, if there is one."""
    return os.environ | {"DECIMA_SITE_NOTEBOOKS": str(notebooks)}


def _missing(run: str) -> list[str]:
    """Names of the notebooks on papers that a run has not executed."""
    return [slug for slug in notebook_slugs() if not (run_folder(run) / "notebooks" / f"{slug}.ipynb").is_file()]
