"""Learning curves of node policies (Figure 6), and the value of network parts and settings."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas

from decima import plotting
from decima.evaluation.statistics import mean_interval, paired_change
from decima.systems.heterogeneous import search
from decima.systems.heterogeneous.generators import tpch_instance
from decima.systems.heterogeneous.policy.scheduler import load
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables
from experiments.experiment import Context, Experiment, Policies, Profiles
from experiments.heterogeneous import ROOMS
from experiments.heterogeneous.instances import LEARNED, OURS, points, schedule_rows, text


def _seeds(name: str, count: int = 8) -> tuple[str, ...]:
    """Training runs from scratch that differ in their seed."""
    return name, *(f"{name}-{seed}" for seed in range(1, count))


TRAININGS = {OURS: _seeds("lachesis-random"), "decima_deft": _seeds("decima-deft-random")}
# The first without a part of the network.
PARTS = {"edges": 8, "ranks": 4, "graph": 4}
ABLATED = {f"lachesis_no_{part}": _seeds(f"lachesis-random-no-{part}", count) for part, count in PARTS.items()}
BASE = "high_rank_up_deft"
FRESH = 1000  # first seed of batches on which trainings are compared; no other experiment has them
PAPER = "lachesis-paper"  # Algorithm 1


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Validations of training runs (``heterogeneous_learning``, ``_actor_critic``) and ``heterogeneous_trainings``."""
    curves = [_curves(names).assign(scheduler=key) for key, names in TRAININGS.items()]
    return {
        "heterogeneous_learning": pandas.concat(curves, ignore_index=True),
        "heterogeneous_trainings": _trainings(source, params, context),
        "heterogeneous_actor_critic": _curves([PAPER], "critic_loss"),
    }


def _curves(policies: Iterable[str], *columns: str) -> pandas.DataFrame:
    """Validation scores of training runs from the cards of their policies, with further curve columns."""
    kept = ("iteration", "phase", "val_greedy", *columns)
    cards = {name: load(name).card["curve"] for name in policies}
    frames = [pandas.DataFrame({key: curve[key] for key in kept}).assign(policy=name) for name, curve in cards.items()]
    return pandas.concat(frames, ignore_index=True).assign(iteration=lambda table: table["iteration"] + 1)


def _trainings(source: WorkloadSource, params: dict, context: Context) -> pandas.DataFrame:
    """Change of every training on fresh batches, their mean, and what better orders would gain.

    The interval of a training is over batches, that of a mean over training runs; ``batches``: over batches, of the
    mean of the training runs.
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
        for mine, other in ((OURS, "decima_deft"), *((part, OURS) for part in ABLATED)):
            pairs = zip(trainings[mine], trainings[other], strict=False)
            means[f"{mine} / {other}, mean"] = [change(*pair)[0] for pair in pairs]
        for name, values in means.items():
            mean, _, low, high = mean_interval(np.array(values))
            each[name] = mean, low, high
        for part, names in ABLATED.items():
            both = [wide[list(kept)].mean(axis=1).to_numpy() for kept in (names, TRAININGS[OURS][: len(names)])]
            each[f"{part} / {OURS}, batches"] = paired_change(*both)
        rows += [(str(ccr), params["jobs"], name, len(instances), *values) for name, values in each.items()]
    return pandas.DataFrame(rows, columns=["ccr", "jobs", "scheduler", "batches", "change_percent", "low", "high"])


def heterogeneous_learning_curve(tables: Tables, run: Run) -> plotting.style.Figure:
    """Makespan over the bound on held-out instances, and the loss of Algorithm 1."""
    figure = plotting.style.new_figure(plotting.style.PAGE, 3.1)
    first, second, third = panels = figure.subplots(1, 3)
    known = load(LEARNED[OURS]).card["validation"]
    label = "makespan / lower bound"
    references = {"best heuristic" if name == "best_rule" else name: each for name, each in known["references"].items()}
    plotting.heterogeneous.learning(tables["heterogeneous_learning"], references, label, first)
    line = {"color": plotting.style.BLACK, "linewidth": 0.8, "xlabel": "episode", "legend": False}
    tables["heterogeneous_actor_critic"].plot("iteration", "val_greedy", ax=second, ylabel=label, **line)
    tables["heterogeneous_actor_critic"].plot(
        "iteration", "critic_loss", ax=third, ylabel="loss of the critic", logy=True, **line
    )
    for axes, title in zip(panels, ("(a) PPO", "(b) Algorithm 1", "(c) Algorithm 1"), strict=True):
        axes.set_title(title, loc="left")
    caption = (
        f"Trained from scratch. PPO: greedy policy on {known['sequences']} held-out instances; lines: mean of "
        f"{len(TRAININGS[OURS])} seeds, shaded: minimum to maximum; dashed: heuristics with the same placement. "
        "Algorithm 1: makespan ratio and loss of the critic, one seed, every 20th episode."
    )
    return plotting.style.entitle(figure, "Learning curves (Figure 6)", caption, "TPC-H")


EXPERIMENT = Experiment(
    "heterogeneous_learning",
    "Luo et al., Figure 6",
    compute,
    rooms=ROOMS,
    figures=(heterogeneous_learning_curve,),
    inputs=(Profiles(), Policies((*sum((TRAININGS | ABLATED).values(), ()), PAPER))),
    tiny={"jobs": 2, "trained_ccr": [5], "trained_workloads": 2, "budget": 20},
)
