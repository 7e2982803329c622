"""Live cells of the lessons work with other parameters, as papermill passes them."""

import nbformat
import papermill
import pytest
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from experiments.notebooks import notebook_path
from experiments.published import BEFORE_LIVE, LIVE
from tests.notebooks.test_sources import LESSONS, START, parameters

pytestmark = pytest.mark.slow
OTHERS = {
    "00-start-here": ({"iterations": 5, "executors": 20}, {"iterations": 6, "executors": 1}),
    "02-motivation": ({"query": 2}, {"query": 21, "size_gb": 2}),
    "05-policy": ({"factor": 0.25}, {"factor": 4.0}),
    "05-training": ({"rollouts": 2}, {"rollouts": 3, "mean_episode_s": 100.0}),
    "05-streams": ({"copies": 2, "window_s": 50.0}, {"copies": 5}),
    "06-simulator": ({"moving_delay_ms": 0.0}, {"moving_delay_ms": 10_000.0}),
    "07-decima": ({"decision": 0}, {"decision": 1000}),
    "21-idle-slots": ({"long_share": 0.5, "long_s": 20.0}, {"load": 0.3, "long_s": 40.0}),
    "30-cloud": ({"actions": [1, 1]}, {"actions": [2, 2, 0, 2, 1]}),
    "32-agent": ({"updates": 5}, {"step_length": 0.1}),
    "40-lachesis": ({"ccr": 0.1}, {"ccr": 10.0, "nodes": 12}),
    "42-network": ({"assigned_first": 0, "hidden": "time"}, {"assigned_first": 8}),
    "60-capacity": ({"target_s": 110.0}, {"hosts": "many", "most": 12, "target_s": 70.0}),
    "70-benchmark": ({"instances": 1}, {"instances": 3, "c0": 1.0}),
}


def test_every_lesson_is_tried():
    assert set(OTHERS) == {path.stem for path in (START, *LESSONS)}


@pytest.mark.parametrize("slug", OTHERS)
def test_live_cells_with_other_parameters(slug, tmp_path):
    """Both sets, one after the other in one kernel, as a reader would try them.

    Cells that only show published numbers are left out: they read no parameter but the run.
    """
    path, cells = notebook_path(slug), []
    for number, given in enumerate(OTHERS[slug]):
        assert set(given) <= set(parameters(path))
        assert all(parameters(path)[name] != value for name, value in given.items())
        notebook = load_notebook_node(str(path))
        if path != START:
            kept = {"parameters", LIVE, BEFORE_LIVE}
            notebook.cells = [cell for cell in notebook.cells if kept & set(cell.metadata.tags)]
        part = parameterize_notebook(notebook, given if path == START else given | {"run": "embedded-quick"}).cells
        for place, cell in enumerate(part):
            cell.id = f"{place}-{number}"
        cells += part
    notebook.cells = cells
    nbformat.write(notebook, tmp_path / "lesson.ipynb")
    done = papermill.execute_notebook(
        tmp_path / "lesson.ipynb", tmp_path / "done.ipynb", cwd=path.parent, progress_bar=False
    )
    shown = [cell for cell in done.cells if cell.cell_type == "code" and cell.outputs]
    assert {cell.id[-1] for cell in shown} == {"0", "1"}
    assert not [output for cell in shown for output in cell.outputs if output.output_type == "error"]
