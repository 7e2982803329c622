"""Learning curves of node policies (Figure 6), and the value of network parts and settings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas

from decima import plotting
from decima.evaluation.statistics import mean_interval, paired_change
from decima.systems.unequal import search
from decima.systems.unequal.policy.scheduler import load
from decima.systems.unequal.tpch import tpch_instance
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables
from experiments.experiment import Context, Experiment, Policies, Profiles
from experiments.unequal.instances import LEARNED, OURS, drawn, points, schedule_rows, text

# Trainings from random weights, seeds 0, 1, 2 of each network.
TRAININGS = {
    scheduler: tuple(f"{name}-random{seed}" for seed in ("", "-1", "-2"))
    for scheduler, name in ((OURS, "lachesis"), ("decima_deft", "decima-deft"))
}
# The same as the first without features of edges.
NO_EDGES = "lachesis_no_edges"
ABLATED = {NO_EDGES: tuple(f"lachesis-random-no-edges{seed}" for seed in ("", "-1", "-2"))}
BASE = "high_rank_up_deft"
FRESH = 1000  # first seed of batches on which trainings are compared; no other experiment has them
# Both recipes over processor time.
PAPER = "lachesis-paper"
WARM = "recipe fast, warm start"
RECIPES = {"recipe paper (Algorithm 1)": PAPER, WARM: "lachesis-batch"}
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


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Validations of trainings (``unequal_learning``, ``_recipes``), tables ``unequal_trainings``, ``_ablations``."""
    curves = [_curves({name: name for name in names}).assign(scheduler=key) for key, names in TRAININGS.items()]
    return {
        "unequal_learning": pandas.concat(curves, ignore_index=True),
        "unequal_learning_recipes": _curves(RECIPES, "cpu_s"),
        "unequal_trainings": _trainings(source, params, context),
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


def _trainings(source: WorkloadSource, params: dict, context: Context) -> pandas.DataFrame:
    """Change of every training on fresh batches, their mean, and what better orders would gain.

    The interval of a training is over batches, that of a mean over trainings; ``batches``: over batches, of the
    mean of the trainings.
    """
    plans = {name: text(name) for name in (BASE, "discounted_rank", "linear_rank", "best_plan")}
    plans["best_plan"] += ":policy=none"
    trainings = TRAININGS | ABLATED
    for scheduler, policies in trainings.items():
        text_of = OURS if scheduler in ABLATED else scheduler
        plans |= {name: f"{text_of}:policy={name}" for name in policies}
    samples = {f"{name}, 16 samples": f"best_sample:policy={name}" for name in TRAININGS[OURS]}
    plans |= samples
    rows = []
    for (ccr,) in points(context, "trainings", [(ccr,) for ccr in params["trained_ccr"]]):
        seeds = range(FRESH, FRESH + params["trained_workloads"])
        options = {"edges": float(ccr), "executors": context.executors, "source": source.name}
        instances = [tpch_instance(params["jobs"], seed, **options) for seed in seeds]
        wide = pandas.DataFrame(schedule_rows(instances, plans))
        wide = wide.pivot(index="seed", columns="scheduler", values="makespan_s")
        wide["search"] = [search(each, params["budget"], seed).makespan_s for seed, each in enumerate(instances)]

        def change(name, base, wide=wide):
            return paired_change(wide[name].to_numpy(), wide[base].to_numpy())

        each = {name: change(name, BASE) for name in wide.columns if name != BASE}
        means = {f"{key}, mean": [each[name][0] for name in policies] for key, policies in trainings.items()}
        means[f"{OURS}, 16 samples, mean"] = [each[name][0] for name in samples]
        for mine, other in ((OURS, "decima_deft"), (NO_EDGES, OURS)):
            pairs = zip(trainings[mine], trainings[other], strict=True)
            means[f"{mine} / {other}, mean"] = [change(*pair)[0] for pair in pairs]
        for name, values in means.items():
            mean, _, low, high = mean_interval(np.array(values))
            each[name] = mean, low, high
        pairs = zip(trainings[NO_EDGES], trainings[OURS], strict=True)
        both = [wide[list(names)].mean(axis=1).to_numpy() for names in zip(*pairs, strict=True)]
        each[f"{NO_EDGES} / {OURS}, batches"] = paired_change(*both)
        rows += [(str(ccr), params["jobs"], name, len(instances), *values) for name, values in each.items()]
    return pandas.DataFrame(rows, columns=["ccr", "jobs", "scheduler", "batches", "change_percent", "low", "high"])


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
    """Makespan over the lower bound on held-out instances, by iteration, of trainings from random weights."""
    figure = plotting.style.new_figure(plotting.style.COLUMN, 3.1)
    known = load(LEARNED[OURS]).card["validation"]
    label = "makespan / lower bound"
    plotting.unequal.learning(tables["unequal_learning"], known["references"], label, figure.subplots())
    caption = (
        f"PPO from random weights; the likeliest nodes on {known['sequences']} held-out instances. Lines: mean of "
        f"{len(TRAININGS[OURS])} trainings, bands: least to largest. Dashed: rules with the same placement."
    )
    return plotting.style.entitle(figure, "Learning curves (Figure 6)", caption, "TPC-H")


def unequal_learning_recipes(tables: Tables, run: Run) -> plotting.style.Figure:
    """Makespan over the lower bound on held-out instances, by processor time, of both recipes."""
    figure = plotting.style.new_figure(plotting.style.COLUMN, 3.1)
    table = tables["unequal_learning_recipes"]
    references = load(RECIPES[WARM]).card["validation"]["references"]
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
        Policies((*sum((TRAININGS | ABLATED).values(), ()), *RECIPES.values(), *SEEDS, *ABLATIONS.values())),
    ),
    tiny={"ccr": [5], "jobs": 2, "workloads": 2, "trained_ccr": [5], "trained_workloads": 2, "budget": 20},
)
