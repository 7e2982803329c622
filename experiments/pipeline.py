"""The pipeline as DVC reads it: ``dvc.yaml`` written from experiments, notebooks and the code that each stage executes.

Every experiment has a stage for its tables, which bears its name, and one for its figures; every notebook has one. Each
stands once and runs for all runs of ``params.yaml``. Dependencies on code are import closures, by folder where most
of a folder is executed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from decima.core.files import atomic_write_text
from experiments.closure import PACKAGE, SLICED, closure
from experiments.experiment import Files, FilesIn, PoliciesIn, experiment, experiment_module, experiment_names
from experiments.figures import experiment_of
from experiments.params import checkout, read_params
from experiments.report import calls, notebook_code, notebook_slugs

HEADER = """\
# From data to report. One run: dvc repro report@tpch-quick; everything: dvc repro.
# Written by `decima pipeline` from the experiments in src/decima/reproduction, the notebooks and the code that they
# execute; a test compares. Numbers come from the stages named after experiments; figures and notebooks only read them,
# and nothing depends on an executed notebook. The train stages are frozen: the policies in models/ are part of the
# repository, and only `dvc repro -f -s train@NAME` makes one anew.
"""
_COMMANDS = "decima.commands.pipeline"


class _Templates(dict):
    """Parameters of a run as DVC's ``foreach`` over the runs fills them in: ``${item.policies.batch}``."""

    def __init__(self, prefix: str = "item") -> None:
        super().__init__()
        self._prefix = prefix

    def __missing__(self, key: str) -> Any:
        return _Templates(f"{self._prefix}.{key}")

    def __str__(self) -> str:
        return f"${{{self._prefix}}}"


def pipeline_text() -> str:
    """The content of ``dvc.yaml``."""
    import yaml

    stages: dict[str, dict] = _data_stages() | {
        "train": _train_stage("decima train", "training"),
        "train-cloud": _train_stage("decima cloud train", "cloud_training"),
    }
    names = experiment_names()
    stages |= {name: _table_stage(name) for name in names}
    stages |= {f"plot-{name}": _figure_stage(name) for name in names}
    stages |= {f"notebook-{slug}": _notebook_stage(slug) for slug in notebook_slugs()}
    stages["report"] = _report_stage()
    stages["results"] = _results_stage()
    text = HEADER + "stages:\n"
    for name, stage in stages.items():
        block = yaml.safe_dump({name: stage}, sort_keys=False, allow_unicode=True, width=120)
        text += "".join(f"  {line}\n" for line in block.splitlines())
    return text


def write_pipeline() -> bool:
    """Write ``dvc.yaml``.

    Returns:
        Whether it was another before.
    """
    path, text = checkout() / "dvc.yaml", pipeline_text()
    before = path.read_text(encoding="utf-8") if path.is_file() else None
    if before != text:
        atomic_write_text(path, text)
    return before != text


def command_entries(command: str) -> tuple[list[str], str]:
    """Starting points of the closure of a stage's command.

    Args:
        command: Such as ``decima evaluate batch --run tpch-quick``.

    Returns:
        Entries, and the code of the notebook that the command executes.
    """
    _, verb, name, *_ = command.split()
    if verb == "evaluate":
        return [f"{_COMMANDS}:evaluate", f"{experiment_module(name)}:compute"], ""
    if verb == "plot":
        figures = [make.__name__ for make in experiment(name).figures]
        return [f"{_COMMANDS}:plot", *_figure_entries(figures)], ""
    if verb == "notebook":
        code = notebook_code(name)
        return [f"{_COMMANDS}:notebook", *_figure_entries(calls(code, "experiments.figure"))], code
    if verb in ("report", "results"):
        return [f"{_COMMANDS}:{verb}"], ""
    if verb == "data":
        return [f"decima.commands.data:{name}"], ""
    return [f"decima.commands.{verb}:{verb}"], ""


def code_dependencies(command: str) -> list[str]:
    """Files and folders of the package that a stage's command executes, relative to the checkout."""
    entries, source = command_entries(command)
    return lifted(closure(entries, source))


def lifted(files: Iterable[Path]) -> list[str]:
    """Files of the package, a folder where over two thirds of it are among them and none of it is followed by parts.

    A list of all files would be exact, but DVC writes its whole lock file after every stage, so that the length of
    these lists decides how long a run of the pipeline takes.

    Args:
        files: Relative to the folder that holds the package.
    """
    files = set(files)
    by_parts = [Path(*name.split(".")) for name in SLICED]
    folders = {folder for path in files for folder in path.parents if len(folder.parts) > 1}
    whole: list[Path] = []
    for folder in sorted(folder for folder in folders if not any(folder.is_relative_to(sliced) for sliced in by_parts)):
        inside = {path.relative_to(PACKAGE.parent) for path in (PACKAGE.parent / folder).rglob("*.py")}
        if 3 * len(inside & files) > 2 * len(inside) and not any(folder.is_relative_to(outer) for outer in whole):
            whole.append(folder)
    rest = [path for path in files if not any(path.is_relative_to(folder) for folder in whole)]
    return sorted(f"src/{path.as_posix()}" for path in [*whole, *rest])


def _figure_entries(names: Iterable[str]) -> list[str]:
    return [f"{experiment_module(experiment_of(name))}:{name}" for name in names]


def _data_stages() -> dict[str, dict]:
    raw, prepared = "data/raw/tpch", "data/workloads/tpch.parquet"
    fetch, prepare = "decima data fetch tpch", "decima data prepare tpch"
    return {
        "fetch-tpch": {
            "desc": "TPC-H profiles from DECIMA_DATA_MIRROR or the public repository, every file checked",
            "cmd": fetch,
            "deps": code_dependencies(fetch),
            "outs": [{raw: {"persist": True}}],
        },
        "prepare-tpch": {
            "desc": "raw profiles into one columnar file",
            "cmd": prepare,
            "deps": [raw, *code_dependencies(prepare)],
            "outs": [prepared],
        },
    }


def _train_stage(command: str, section: str) -> dict:
    outputs = [{f"models/${{key}}{end}": {"cache": False, "persist": True}} for end in (".weights.h5", ".json")]
    command += " --params ${key} --out runs/${key} --policy models/${key}"
    # No code among the dependencies: DVC compares none of a frozen stage, and the policy's card names the revision.
    stage = {
        "desc": "a policy from scratch, an hour or so on four cores; runs/NAME must not hold a finished run",
        "frozen": True,
        "cmd": command,
        "params": [f"{section}.${{key}}"],
        "outs": outputs,
    }
    return {"foreach": f"${{{section}}}", "do": stage}


def _for_every_run(command: str, description: str, **parts) -> dict:
    return {"foreach": "${runs}", "do": {"desc": description, "cmd": f"{command} --run ${{key}}", **parts}}


def _parameters(*names: str) -> list[str]:
    return [f"runs.${{key}}.{name}" for name in ("workload", "executors", "policies", *names)]


def _table_stage(name: str) -> dict:
    chosen = experiment(name)
    command = f"decima evaluate {name}"
    return _for_every_run(
        command,
        f"tables, {chosen.section}",
        params=_parameters(name),
        deps=[*code_dependencies(command), *_input_dependencies(name)],
        outs=[f"reports/${{key}}/tables/{name}", f"reports/${{key}}/cards/{name}.json"],
    )


def _input_dependencies(name: str) -> list[str]:
    """Inputs of an experiment, the same text for every run."""
    found: dict[str, None] = {}
    for entry in experiment(name).inputs:
        if isinstance(entry, (Files, FilesIn, PoliciesIn)):
            paths = [path for run, params in read_params().items() for path in entry.paths(run, params)]
            found |= dict.fromkeys(path for path in paths if (checkout() / path).exists())
        else:
            found |= dict.fromkeys(str(path) for path in entry.paths("${key}", _Templates()))
    return list(found)


def _figure_stage(name: str) -> dict:
    command = f"decima plot {name}"
    return _for_every_run(
        command,
        f"figures, {experiment(name).section}",
        params=_parameters(),
        deps=[*code_dependencies(command), f"reports/${{key}}/tables/{name}"],
        outs=[f"reports/${{key}}/figures/{name}"],
    )


def _notebook_stage(slug: str) -> dict:
    command = f"decima notebook {slug}"
    read = calls(notebook_code(slug), "experiments.load")
    return _for_every_run(
        command,
        "executed notebook",
        params=_parameters(),
        deps=[
            f"notebooks/{slug}.ipynb",
            *code_dependencies(command),
            *(f"reports/${{key}}/tables/{name}" for name in read),
        ],
        outs=[{f"reports/${{key}}/notebooks/{slug}.ipynb": {"cache": False}}],
    )


def _report_stage() -> dict:
    command = "decima report"
    return _for_every_run(
        command,
        "one page from the executed notebooks",
        deps=[*code_dependencies(f"{command} --run"), "reports/${key}/figures", "reports/${key}/notebooks"],
        outs=[{"reports/${key}/index.html": {"cache": False}}],
    )


def _results_stage() -> dict:
    """Not for every run, and no stage depends on it: `decima reproduce --check` compares with what it wrote before."""
    command = "decima results --run ${key}"
    return {
        "foreach": "${results}",
        "do": {
            "desc": "figures and tables that are part of the repository",
            "cmd": command,
            "params": ["results.${key}"],
            "deps": [
                *code_dependencies(command),
                *(f"notebooks/{slug}.ipynb" for slug in notebook_slugs()),
                "reports/${key}/figures",
                "reports/${key}/tables",
            ],
            "outs": [{"reports/results/${key}": {"cache": False}}],
        },
    }
