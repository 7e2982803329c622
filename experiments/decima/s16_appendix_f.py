"""Appendix F: the grid search behind Graphene*, and what each part of it is worth."""

from __future__ import annotations

import pandas

from decima import plotting
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables
from experiments.decima.s07_packing import ROOMS, labels, side_by_side
from experiments.experiment import Context, Experiment, TablesOf

# Parts of Graphene* and which combinations of the grid are without it.
PARTS = {
    "everything": lambda grid: grid["by_memory"] == 0.0,
    "no troublesome stages": lambda grid: (grid["long"] > 1.0) & (grid["frag"] < 0.0) & (grid["by_memory"] == 0.0),
    "long stages only": lambda grid: (grid["frag"] < 0.0) & (grid["long"] <= 1.0) & (grid["by_memory"] == 0.0),
    "hard to pack only": lambda grid: (grid["long"] > 1.0) & (grid["frag"] >= 0.0) & (grid["by_memory"] == 0.0),
    "jobs by arrival": lambda grid: (grid["order"] == 0.0) & (grid["by_memory"] == 0.0),
    "order of jobs first": lambda grid: (grid["larger"] == 0.0) & (grid["by_memory"] == 0.0),
    "larger classes forbidden": lambda grid: (grid["larger"] == 2.0) & (grid["by_memory"] == 0.0),
    "shares in memory": lambda grid: grid["by_memory"] == 1.0,
}


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Table ``appendix_f``: per workload, load and part, best combination without it on training jobs.

    A part of which the grid has no combination has no row.
    """
    rows = []
    grids = context.tables("packing")["packing_grid"]
    for (workload, setting), grid in grids.groupby(["workload", "setting"], sort=False):
        best = grid["mean_s"].min()
        for part, without in PARTS.items():
            kept = grid[without(grid)]
            if len(kept):
                mean = kept["mean_s"].min()
                rows.append((workload, setting, part, len(kept), mean, 100.0 * (mean / best - 1.0)))
    columns = ["workload", "setting", "part", "combinations", "avg_jct_s", "above_best_percent"]
    return {"appendix_f": pandas.DataFrame(rows, columns=columns)}


def graphene_parts(tables: Tables, run: Run) -> plotting.style.Figure:
    """Distance of the best combination without a part from the best of all."""
    table = tables["appendix_f"]
    figure = side_by_side(table, plotting.packing.cost_of_parts, sharey=True)
    caption = "Average JCT above the best configuration of the grid (0 %); one point per load, training jobs."
    return plotting.style.entitle(figure, "Ablation of Graphene*", caption, labels(table))


EXPERIMENT = Experiment(
    "appendix_f", "appendix F", compute, rooms=ROOMS, figures=(graphene_parts,), inputs=(TablesOf("packing"),), tiny={}
)
