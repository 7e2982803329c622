import ast
from pathlib import Path

import pandas
import pytest
from matplotlib.text import Text

import decima
from decima.core.errors import ConfigError
from experiments import figures
from experiments.captions import presets
from experiments.experiment import experiment_names
from tests.unit.experiments.kept import kept
from tests.unit.plotting.frames import legend

NAMES = [name for experiment in experiment_names() for name in figures.figure_names(experiment)]
OF = {name: experiment for experiment in experiment_names() for name in figures.figure_names(experiment)}


def figure(name, run="tpch-quick", **tables):
    """A figure of the kept tables of a run, some of them replaced."""
    return figures.figure(name, kept(OF[name], run) | tables, run)


def test_no_name_of_a_figure_is_used_twice():
    assert len(set(NAMES)) == len(NAMES)


def test_captions_count_what_the_table_holds():
    assert figure("fig09a_batch").caption.startswith("20 batches of 20 jobs")
    assert figure("fig02_parallelism").caption.startswith("Each job alone. Mean over 5 seeds")
    assert figure("fig22_optimality").caption.startswith("2 batches")


@pytest.mark.parametrize("name", ["effects_jct", "effects_change", "switches", "released_rules"])
def test_weighted_fair_is_called_tuned_only_where_it_is(name):
    drawn = figure(name, "embedded-quick")
    labels = {text for axes in drawn.axes for text in axes.get_legend_handles_labels()[1]}
    labels |= {text.get_text() for text in drawn.findobj(Text)}
    assert "weighted fair (α = −1)" in labels
    assert "tuned weighted fair" not in labels


def test_captions_of_untuned_schedulers_name_the_preset():
    caption = figure("effects_jct", "embedded-quick").caption
    assert "Not tuned: weighted fair (α = −1), capped SRW." in caption
    assert presets(["fair", "capped_srw", "weighted_fair_default", "fair"]) == (
        " Not tuned: capped SRW, weighted fair (α = −1)."
    )
    assert presets(["fair"]) == ""


def test_figures_of_decima_name_the_stored_policy():
    for name in ("fig03_schedules", "fig05_embeddings", "fig06_choice", "fig09a_batch", "batch_changes"):
        assert "embedded-batch" in figure(name, "embedded-quick").caption
    for name in ("fig09b_stream", "fig10_stream", "stream_changes", "fig07_sequences", "fig15b_latency"):
        assert "tpch-stream" in figure(name).caption


def test_figure_15a_shows_encodings_of_limits_only():
    curves = kept("learning")["learning_curves"]
    recipe = curves[curves["variant"] == "recipe"]
    others = [recipe.assign(variant=name, run=name) for name in ("limit per stage", "no warm start")]
    drawn = figure("fig15a_curve", learning_curves=pandas.concat([recipe, *others]))
    labels = legend(drawn.axes[0])
    assert labels[:4] == ["Decima", "Decima, sampled", "stage-level limits", "stage-level limits, sampled"]
    assert "no warm start" not in labels


@pytest.mark.parametrize(("run", "kinds"), [("embedded-quick", ("png", "svg")), ("tpch-full", ("png", "pdf", "svg"))])
def test_draw_writes_every_figure_in_the_formats_of_the_run(tmp_path, run, kinds):
    written = figures.draw("batch", run, kept("batch", "embedded-quick"), tmp_path / "new")
    assert [path.name for path in written] == [
        f"{name}.{kind}"
        for name in ("fig09a_batch", "batch_changes", "batch_heuristics", "alpha_batch")
        for kind in kinds
    ]
    assert all(path.stat().st_size > 5000 for path in written)


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"unknown figure 'fig99'; known: .*fig09a_batch"):
        figures.figure("fig99", {}, "tpch-quick")
    with pytest.raises(ConfigError, match=r"unknown experiment 'x'; known: .*motivation"):
        figures.figure_names("x")


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name.split(".")[0] for name in names}


def test_matplotlib_is_imported_in_the_plotting_package_only():
    package = Path(decima.__file__).parent
    users = {
        path.relative_to(package).parts[0]
        for path in package.rglob("*.py")
        if imported(path) & {"matplotlib", "seaborn"}
    }
    assert users == {"plotting"}
