"""Learning curves of node policies (Figure 6), and the value of network parts and settings."""

from __future__ import annotations

from collections.abc import Mapping

import pandas

from decima import plotting
from decima.evaluation.statistics import paired_change
from decima.systems.unequal.policy.scheduler import load
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables
from experiments.experiment import Context, Experiment, Policies, Profiles
from experiments.unequal.instances import BATCH_POLICIES, drawn, points, schedule_rows

LABELS = {
    "lachesis-batch": "Lachesis, batches",
    "decima-deft-batch": "Decima-DEFT, batches",
}
# Both recipes over processor time.
PAPER = "lachesis-paper"
RECIPES = {"recipe paper (Algorithm 1)": PAPER, "recipe fast": "lachesis-batch"}
# Short trainings: one with three seeds, and one for each part that is left out or added.
SEEDS = ("lachesis-short", "lachesis-short-1", "lachesis-short-2")
ABLATIONS = {
    "no edge features": "lachesis-no-edges",
    "no ranks": "lachesis-no-ranks",
    "no graph": "lachesis-no-graph",
    "executor summary": "lachesis-executors",
    "no copies": "lachesis-no-copies",
}
_SHORT = {f"seed {seed}": name for seed, name in enumerate(SEEDS)}
# Whose look a line has.
SCHEDULERS = {"Lachesis, batches": "lachesis", "Decima-DEFT, batches": "decima_deft"}


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Validations of trainings (``unequal_learning``, ``_recipes``, ``_seeds``), and table ``unequal_ablations``."""
    return {
        "unequal_learning": _curves({LABELS[name]: name for name in params["policies"]}),
        "unequal_learning_recipes": _curves(RECIPES, "cpu_s"),
        "unequal_learning_seeds": _curves(_SHORT | ABLATIONS),
        "unequal_ablations": _ablations(source, params, context),
    }


def _curves(policies: Mapping[str, str], *columns: str) -> pandas.DataFrame:
    """Validation scores of trainings from the cards of their policies, with further curve columns."""
    rows = []
    for label, name in policies.items():
        card = load(name).card
        curve = pandas.DataFrame({key: card["curve"][key] for key in ("iteration", "phase", "val_greedy", *columns)})
        rows.append(curve.assign(policy=label, iteration=curve["iteration"] + 1))
    return pandas.concat(rows, ignore_index=True)


def _ablations(source: WorkloadSource, params: dict, context: Context) -> pandas.DataFrame:
    """Makespan of short trainings against the mean of seed repetitions, on fresh batches."""
    texts = {label: f"lachesis:policy={name}" for label, name in (_SHORT | ABLATIONS).items()}
    texts["no copies"] += ",duplicate=false"
    rows = []
    for (ccr,) in points(context, "ablations", [(ccr,) for ccr in params["ccr"]]):
        instances = drawn(source, params["jobs"], ccr, params["workloads"], context.executors)
        table = pandas.DataFrame(schedule_rows(instances, texts))
        wide = table.pivot(index="seed", columns="scheduler", values="makespan_s")
        base = wide[list(_SHORT)].mean(axis=1).to_numpy()
        for label in texts:
            change = paired_change(wide[label].to_numpy(), base)
            rows.append((str(ccr), params["jobs"], label, len(instances), *change))
    return pandas.DataFrame(rows, columns=["ccr", "jobs", "training", "batches", "change_percent", "low", "high"])


def unequal_learning_curve(tables: Tables, run: Run) -> plotting.style.Figure:
    """Makespan over the lower bound on held-out instances, by iteration."""
    table, short = tables["unequal_learning"], tables["unequal_learning_seeds"]
    figure = plotting.style.new_figure(plotting.style.COLUMN, 2.6)
    table = table.assign(scheduler=[SCHEDULERS[name] for name in table["policy"]])
    axes = figure.subplots()
    plotting.unequal.learning(table, "makespan / lower bound", axes)
    short = short[short["policy"].isin(_SHORT)]
    plotting.unequal.spread(short, "lachesis", f"Lachesis, {len(_SHORT)} short trainings", axes)
    caption = (
        "The likeliest nodes on 40 held-out instances, one seed each; filled: imitation, open: policy gradient. Band: "
        f"least to largest of {len(_SHORT)} seeds."
    )
    return plotting.style.entitle(figure, "Learning curves (Figure 6)", caption, "TPC-H")


def unequal_learning_recipes(tables: Tables, run: Run) -> plotting.style.Figure:
    """Makespan over the lower bound on held-out instances, by processor time, of both recipes."""
    figure = plotting.style.new_figure(plotting.style.COLUMN, 3.1)
    table = tables["unequal_learning_recipes"]
    references = load(RECIPES["recipe fast"]).card["validation"]["references"]
    plotting.unequal.recipes(table, references, "makespan / lower bound", figure.subplots())
    caption = (
        "The likeliest nodes on 40 held-out instances, one seed each; filled: imitation, open: actor-critic or policy "
        "gradient. Dashed: rules with the same placement."
    )
    return plotting.style.entitle(figure, "Two recipes", caption, "TPC-H")


EXPERIMENT = Experiment(
    "unequal_learning",
    "Luo et al., Figure 6",
    compute,
    figures=(unequal_learning_curve, unequal_learning_recipes),
    inputs=(
        Profiles(),
        Policies((*BATCH_POLICIES, PAPER, *SEEDS, *ABLATIONS.values())),
    ),
    tiny={"policies": ["lachesis-batch", "decima-deft-batch"], "ccr": [5], "jobs": 2, "workloads": 2},
)
