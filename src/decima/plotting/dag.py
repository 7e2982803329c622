"""Jobs as graphs of stages (Figure 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import networkx
import numpy as np
import pandas
from matplotlib.axes import Axes
from scipy.optimize import isotonic_regression

from decima.plotting import style, words


def layered_positions(graph: networkx.DiGraph) -> dict[int, np.ndarray]:
    """Positions by stage: parents above children, few crossings, near neighbours.

    A stage lies as low as its children allow, so that inputs of a late join are drawn next to it. Sweeps down and up
    first order each layer by the mean place of its neighbours, then move its stages there as far as the order and a
    distance of 1 allow, which is an isotonic regression.
    """
    depth = {}
    for stage in reversed(list(networkx.topological_sort(graph))):
        depth[stage] = max((depth[child] + 1 for child in graph.successors(stage)), default=0)
    layers = [[stage for stage in graph if depth[stage] == level] for level in range(max(depth.values()) + 1)]
    position = {stage: float(index) for layer in layers for index, stage in enumerate(layer)}

    beside = graph.to_undirected().neighbors

    def wishes(layer: list[int], neighbours: Callable) -> list[float]:
        """Mean position of the neighbours of each stage, unchanged without any."""
        places = [[position[other] for other in neighbours(stage)] or [position[stage]] for stage in layer]
        return [sum(values) / len(values) for values in places]

    for sweep in range(12):
        for order, neighbours in ((layers, graph.successors), (layers[::-1], graph.predecessors)):
            for layer in order:
                if sweep < 8:
                    wish = dict(zip(layer, wishes(layer, neighbours), strict=True))
                    layer.sort(key=wish.__getitem__)
                    moved = np.arange(len(layer)) - (len(layer) - 1) / 2
                else:
                    steps = np.arange(len(layer))
                    moved = isotonic_regression(np.array(wishes(layer, beside)) - steps).x + steps
                position |= dict(zip(layer, moved, strict=True))
    return {stage: np.array([position[stage], float(depth[stage])]) for stage in graph}


@style.on_axes(style.COLUMN, 3.0)
def dag(
    stages: pandas.DataFrame,
    edges: pandas.DataFrame,
    axes: Axes | None = None,
    *,
    labels: bool | Sequence[str] = True,
    colors: Sequence[str] | None = None,
) -> None:
    """Graph of the stages of a job, with areas by work.

    Args:
        stages: One row per stage of one job: stage, tasks, duration_s; ``job`` for the title, ``name`` for the labels.
        edges: One row per dependency of that job: parent, child.
        labels: Write tasks × mean task duration next to each stage, or these texts.
        colors: One per stage; all alike when omitted.

    Source: §2, Figure 1.
    """
    graph = networkx.DiGraph()
    graph.add_nodes_from(stages["stage"])
    graph.add_edges_from(zip(edges["parent"], edges["child"], strict=True))
    positions = layered_positions(graph)
    work_s = (stages["tasks"] * stages["duration_s"]).to_numpy()
    sizes = 18.0 + 180.0 * work_s / (work_s.max() or 1.0)
    networkx.draw_networkx_edges(
        graph, positions, ax=axes, nodelist=list(graph), node_size=sizes, edge_color="0.6", width=0.7, arrowsize=6
    )
    drawn = networkx.draw_networkx_nodes(
        graph,
        positions,
        ax=axes,
        nodelist=list(graph),
        node_size=sizes,
        node_color=style.SKY if colors is None else list(colors),
        edgecolors=style.BLUE if colors is None else "0.2",
        linewidths=0.7,
    )
    drawn.set_gid("stages")
    texts = _labels(stages) if labels is True else labels or ()
    for stage, text, size in zip(stages["stage"], texts, sizes, strict=bool(labels)):
        axes.annotate(
            text,
            positions[stage],
            xytext=(np.sqrt(size) / 2.0 + 1.2, 0.0),
            textcoords="offset points",
            fontsize=5.5 if labels is True else 7.0,
            linespacing=0.95,
            va="center",
            bbox={"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none", "alpha": 0.7},  # on edges
        )
    number = f"{words.count(len(stages), 'stage')}, {words.count(int(stages['tasks'].sum()), 'task')}"
    name = f"{words.job_label(stages['job'].iloc[0])}: " if "job" in stages else ""
    axes.set_title(name + number, fontsize=8)
    places = [position[0] for position in positions.values()]
    middle, half = (max(places) + min(places)) / 2, max(0.8, (max(places) - min(places)) / 2)
    axes.set_xlim(middle - 1.08 * half, middle + 1.3 * half)  # labels stand to the right
    axes.margins(y=0.08)
    axes.set_axis_off()


def _labels(stages: pandas.DataFrame) -> list[str]:
    names = [f"{name}\n" for name in stages["name"]] if "name" in stages else [""] * len(stages)
    durations = [f"{value:.1f} s" if value >= 0.1 else f"{1000.0 * value:.0f} ms" for value in stages["duration_s"]]
    return [f"{n}{tasks} ×\n{time}" for n, tasks, time in zip(names, stages["tasks"], durations, strict=True)]


@style.styled
def dag_panel(stages: pandas.DataFrame, edges: pandas.DataFrame, *, columns: int = 3) -> style.Figure:
    """Graphs of several jobs side by side; areas compare inside a job only.

    Args:
        stages: As for :func:`dag`, of several jobs.
        edges: As for :func:`dag`, with the column ``job``.
        columns: Jobs in a row.
    """
    jobs = stages["job"].unique()
    rows = -(-len(jobs) // columns)
    figure = style.new_figure(style.PAGE, 3.1 * rows)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, job in zip(grid, jobs, strict=False):
        dag(stages[stages["job"] == job], edges[edges["job"] == job], axes)
    for axes in grid[len(jobs) :]:
        axes.set_axis_off()
    return figure
