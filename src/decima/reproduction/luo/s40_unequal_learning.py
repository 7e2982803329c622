"""Learning curves of the stored policies that choose nodes (Figure 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas

from decima import plotting
from decima.heterogeneous.policy.scheduler import load
from decima.reproduction.captions import Run, Tables
from decima.reproduction.experiment import Context, Experiment
from decima.reproduction.luo.instances import BATCH_POLICIES
from decima.workload.sources import WorkloadSource

if TYPE_CHECKING:
    from decima.plotting.style import Figure

LABELS = {
    "lachesis-batch": "Lachesis, batches",
    "decima-deft-batch": "Decima-DEFT, batches",
}
# Whose look a line has.
SCHEDULERS = {"Lachesis, batches": "lachesis", "Decima-DEFT, batches": "decima_deft"}


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Table ``unequal_learning``: score at every validation of the trainings, from the cards of the policies."""
    rows = []
    for name in params["policies"]:
        card = load(name).card
        curve = pandas.DataFrame({key: card["curve"][key] for key in ("iteration", "phase", "val_greedy")})
        rows.append(curve.assign(policy=LABELS[name], iteration=curve["iteration"] + 1))
    return {"unequal_learning": pandas.concat(rows, ignore_index=True)}


def unequal_learning_curve(tables: Tables, run: Run) -> Figure:
    """Makespan over the lower bound on held-out instances, by iteration."""
    table = tables["unequal_learning"]
    figure = plotting.style.new_figure(plotting.style.COLUMN, 2.6)
    table = table.assign(scheduler=[SCHEDULERS[name] for name in table["policy"]])
    plotting.unequal.learning(table, "makespan / lower bound", figure.subplots())
    caption = "The likeliest nodes on 40 held-out instances, one seed each; filled: imitation, open: policy gradient."
    return plotting.style.entitle(figure, "Learning curves (Figure 6)", caption, "TPC-H")


EXPERIMENT = Experiment(
    "unequal_learning",
    "Luo et al., Figure 6",
    compute,
    figures=(unequal_learning_curve,),
    inputs=tuple(BATCH_POLICIES),
    tiny={"policies": ["lachesis-batch", "decima-deft-batch"]},
)
