"""Appendix A, Figure 16: a critical path heuristic against the best order on five slots.

The text gives two branches that meet in a join, with 90 and 10 task-seconds. It also gives both makespans in seconds;
the stages themselves are only drawn. The numbers leave little choice:

- 20+3e is all work on five slots, so nothing idles: three stages as wide as the cluster take e each.
- 28+3e idles four slots for 10 s: the left branch is one task, and it runs alone at the end.
- In between, the right branch gives four slots 10 s of work during that task and all slots 10 s more; the former takes
  8 s on five slots, so its tasks are short: 40 of 1 s. The latter is 5 of 10 s.

Which of the two right stages comes first, and where the short stages are, the numbers leave open. Here the right
branch is short, blue (40 x 1 s), orange (5 x 10 s). The left one is short, green (1 x 10 s), and the join is short.
Blue and green run side by side in the best schedule, as the caption says. A heuristic that follows the critical path
needs 28+3e whether or not it prefers runnable stages.

Differs: the caption also says that orange and green end together; here green ends with blue, and orange follows. With
orange before blue the makespans are the same, but then orange, not blue, runs at the same time as green.

Source: appendix A, Figure 16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas

from decima import plotting
from decima.core.errors import ConfigError
from decima.evaluation.run import simulate
from decima.systems.spark.result import Result
from decima.systems.spark.schedulers import Decision, Observation
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile, Stage
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables
from experiments.experiment import Context, Experiment
from experiments.rooms import SPARK_ROOMS

SLOTS = 5
# Makespan in seconds without the 3 epsilon.
PAPER_S = {"critical_path": 28.0, "optimal": 20.0}
# name, tasks, seconds (None: epsilon), parents
_STAGES = (
    ("left", SLOTS, None, ()),
    ("green", 1, 10.0, (0,)),
    ("right", SLOTS, None, ()),
    ("blue", 40, 1.0, (2,)),
    ("orange", SLOTS, 10.0, (3,)),
    ("join", SLOTS, None, (1, 4)),
)
# The short stages of Figure 16 are grey, the others are called by their colours.
_GREY = {"left": "0.75", "right": "0.5", "join": "0.2"}
EXAMPLE = "the example of appendix A"


def example_job(epsilon_s: float = 0.1) -> JobProfile:
    """The job of Figure 16.

    Args:
        epsilon_s: Duration of the tasks of the three short stages, above 0.

    Raises:
        ConfigError: ``epsilon_s`` is not a finite number above 0.
    """
    if not 0.0 < epsilon_s < math.inf:
        raise ConfigError(f"epsilon_s must be a finite number above 0, got {epsilon_s!r}")

    def stage(name: str, tasks: int, seconds: float | None, parents: tuple[int, ...]) -> Stage:
        durations = np.array([1000.0 * (epsilon_s if seconds is None else seconds)])
        return Stage(name, tasks, parents, (SLOTS,), ([],), ([],), (durations,))

    return JobProfile("Figure 16", tuple(stage(*row) for row in _STAGES), "example")


class StageOrder:
    """Scheduler of one job's stages in fixed order; executors wait for the first eligible stage.

    Args:
        order: Stage indices from first to last.
    """

    name = "stage_order"

    def __init__(self, order) -> None:
        self._rank = {stage: rank for rank, stage in enumerate(order)}

    def reset(self, rng: np.random.Generator) -> None:
        """Forget nothing: the order stays."""

    def decide(self, observation: Observation) -> Decision:
        """Choose the first stage of the order, with as many executors as it can use."""
        stage = min(observation.frontier, key=lambda stage: self._rank[stage.index])
        return observation.grant(stage, min(observation.num_free_executors, stage.room))


@dataclass(frozen=True, eq=False)
class Example:
    """Pair of schedules of the example, with their logs."""

    epsilon_s: float  # duration of the tasks of the short stages
    critical_path: Result  # the run of SJF-CP
    optimal: Result  # the run of the best order of stages
    optimal_order: tuple[str, ...]  # names of the stages in that order
    num_orders: int  # orders of stages that were tried, all that put parents first

    def rows(self) -> list[dict]:
        """One row per schedule: policy, epsilon_s, makespan_s, paper_s."""
        return [
            {
                "policy": policy,
                "epsilon_s": self.epsilon_s,
                "makespan_s": getattr(self, policy).makespan_s,
                "paper_s": paper_s + 3.0 * self.epsilon_s,
            }
            for policy, paper_s in PAPER_S.items()
        ]


def run_example(epsilon_s: float = 0.1) -> Example:
    """Simulate the example under the critical path heuristic and under every order of its stages.

    Args:
        epsilon_s: As for :func:`example_job`.
    """
    import networkx

    profile = example_job(epsilon_s)
    workload = Workload((Job(profile),), "Figure 16")

    def run(scheduler, **parameters) -> Result:
        return simulate(workload, scheduler, SLOTS, mode="simplified", log=True, parameters=parameters)

    orders = list(networkx.all_topological_sorts(profile.graph))
    runs = [run(StageOrder(order)) for order in orders]
    best = min(range(len(orders)), key=lambda index: runs[index].makespan_ms)
    return Example(
        epsilon_s=epsilon_s,
        critical_path=run("sjf_cp", stage_rule=2),
        optimal=runs[best],
        optimal_order=tuple(profile.stages[stage].name for stage in orders[best]),
        num_orders=len(orders),
    )


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``appendix_a`` (makespans for every epsilon) and ``appendix_a_tasks`` (schedules for the largest)."""
    examples = [run_example(epsilon_s) for epsilon_s in sorted(params["epsilon_s"])]
    shown = examples[-1]
    tasks = [
        getattr(shown, case).log.tasks().drop(columns="wave").assign(case=case) for case in ("critical_path", "optimal")
    ]
    rows = [row for example in examples for row in example.rows()]
    return {"appendix_a": pandas.DataFrame(rows), "appendix_a_tasks": pandas.concat(tasks)}


def _color(stage: str) -> str:
    return _GREY.get(stage) or getattr(plotting.style, stage.upper())


def fig16_dag(tables: Tables, run: Run) -> plotting.style.Figure:
    """The DAG of Figure 16."""
    epsilon_s = float(tables["appendix_a"]["epsilon_s"].max())
    profile = example_job(epsilon_s)
    stages = pandas.DataFrame(
        [
            {
                "stage": index,
                "name": stage.name,
                "tasks": stage.num_tasks,
                "duration_s": stage.mean_duration_ms / 1000.0,
            }
            for index, stage in enumerate(profile.stages)
        ]
    )
    edges = pandas.DataFrame(list(profile.graph.edges), columns=["parent", "child"])
    axes = plotting.dag.dag(stages, edges, colors=[_color(stage.name) for stage in profile.stages])
    caption = f"1 job; label of each stage: tasks × task duration, ε = {epsilon_s:g} s."
    return plotting.style.entitle(axes.figure, "Figure 16: two branches and a join", caption, EXAMPLE)


def fig16_schedules(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 16."""
    tasks, summary = tables["appendix_a_tasks"], tables["appendix_a"]
    names = dict(enumerate(stage.name for stage in example_job().stages))
    colors = {stage: _color(name) for stage, name in names.items()}
    figure = plotting.optimality.example_schedules(tasks, names, colors)
    slots, epsilon_s = tasks["executor"].max() + 1, summary["epsilon_s"].max()
    caption = f"1 job, {slots} executors, ε = {epsilon_s:g} s, exact durations, 1 run per schedule."
    return plotting.style.entitle(figure, "Figure 16: a schedule that plans ahead", caption, EXAMPLE)


EXPERIMENT = Experiment(
    "appendix_a",
    "appendix A, Figure 16",
    compute,
    rooms=SPARK_ROOMS,
    figures=(fig16_dag, fig16_schedules),
    tiny={"epsilon_s": [0.1]},
)
