"""Figure 1 and the limits of idling: two jobs by hand, optimum of two classes."""

from __future__ import annotations

import numpy as np
import pandas

from decima import plotting
from decima.evaluation.run import simulate
from decima.systems.spark.optimum.idle_value import TwoClassCluster, idle_value
from decima.systems.spark.schedulers import Decision, Observation
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile, Stage
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables
from experiments.experiment import Context, Experiment
from experiments.rooms import SPARK_ROOMS

# Figure 1: (length, arrival) of the two jobs in seconds.
FIGURE_1 = ((20.0, 0.0), (4.0, 2.0))
SLOTS_S = (0.0, 2.0)
MODES = ("paper", "released")


class SlotBeforeTheFirst:
    """Jobs in order of arrival; the first stage of all is delayed once.

    Args:
        slot_s: Length of its slot in seconds; 0 for none.
    """

    def __init__(self, slot_s: float) -> None:
        self.name = f"slot of {slot_s:g} s" if slot_s else "no slot"
        self.slot_s = slot_s

    def reset(self, rng: np.random.Generator) -> None:
        """Nothing to forget."""

    def decide(self, observation: Observation) -> Decision:
        """Delay stage 0 once; then take the first frontier stage, of two jobs the later."""
        stage = max(observation.frontier, key=lambda each: each.job.arrival_ms)
        if self.slot_s > 0.0 and stage.id == 0 and stage.delayable:
            return Decision(stage, delay_ms=1000.0 * self.slot_s)
        return observation.grant(stage, 1)


def figure_1_jobs() -> Workload:
    """The two jobs of Figure 1, one task each."""
    jobs = []
    for number, (length_s, arrival_s) in enumerate(FIGURE_1, 1):
        wave = (np.array([1000.0 * length_s]),)
        profile = JobProfile(f"job {number}", (Stage("a", 1, (), (1,), wave, wave, wave),), "Figure 1")
        jobs.append(Job(profile, 1000.0 * arrival_s))
    return Workload(tuple(jobs), "Figure 1")


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``idle_example`` (jobs), ``idle_example_tasks``, ``idle_example_slots`` and ``idle_gain``, the optimum."""
    jobs, tasks, slots = [], [], []
    for mode in MODES:
        for slot_s in SLOTS_S:
            settings = {"moving_delay_ms": 0.0, "warmup_delay_ms": 0.0}
            result = simulate(figure_1_jobs(), SlotBeforeTheFirst(slot_s), 1, log=True, mode=mode, **settings)
            columns = {"mode": mode, "slot_s": slot_s}
            jobs.append(result.jobs[["name", "arrival_s", "completion_s", "jct_s"]].assign(**columns))
            tasks.append(result.task_frame().assign(**columns))
            slots.append(result.log.delays().assign(**columns))
    gains = [
        {
            "executors": executors, "long_s": long_s, "share": share, "load": load, "without_s": optimum.without_s,
            "with_s": optimum.with_s, "gain_percent": optimum.gain_percent, "residual_s": optimum.residual_s,
        }
        for executors in params["executors"]
        for load in params["load"]
        for long_s in params["long_s"]
        for share in params["share"]
        for optimum in [_optimum(executors, long_s, share, load, params["step_s"], context)]
    ]  # fmt: skip
    return {
        "idle_example": pandas.concat(jobs),
        "idle_example_tasks": pandas.concat(tasks),
        "idle_example_slots": pandas.concat(slots),
        "idle_gain": pandas.DataFrame(gains),
    }


def _optimum(executors: int, long_s: float, share: float, load: float, step_s: float, context: Context):
    label = f"{executors} executors, {long_s:g} s, {share:g}, {load:g}"
    return idle_value(TwoClassCluster(executors, long_s, 10.0, share, load), step_s=step_s, progress=context.bar(label))


def fig1_idle_slot(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 1: the two jobs without and with a slot before the first."""
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.6)
    arrival_s = pandas.Series([arrival for _, arrival in FIGURE_1])
    for axes, slot_s in zip(figure.subplots(len(SLOTS_S), 1, sharex=True), SLOTS_S, strict=True):
        tasks, slots = (
            table[(table["mode"] == "paper") & (table["slot_s"] == slot_s)]
            for table in (tables["idle_example_tasks"], tables["idle_example_slots"])
        )
        title = SlotBeforeTheFirst(slot_s).name
        plotting.gantt.gantt(tasks, axes, executors=1, title=title, arrival_s=arrival_s, slots=slots, each_task=True)
        axes.set_yticks([0])
        for task in tasks.itertuples():
            middle = (task.start_s + task.finish_s) / 2.0
            white = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
            axes.text(middle, 0.0, f"job {task.job + 1}", ha="center", va="center", fontsize=8, zorder=4, bbox=white)
    caption = (
        "One executor; job 1 (20 s) arrives at 0 s, job 2 (4 s) at 2 s. Hatched: a deliberate idle slot; black lines: "
        "a job completes. No moving delay."
    )
    return plotting.style.entitle(figure, "Figure 1: a slot before a long job", caption, "two jobs")


def idle_gain_map(tables: Tables, run: Run) -> plotting.style.Figure:
    """Gain of the best idling rule by share of long jobs, length, executors and load."""
    table = tables["idle_gain"]
    cases = list(table.groupby(["executors", "load"]).groups)
    columns = min(2, len(cases))
    rows = -(-len(cases) // columns)
    figure = plotting.style.new_figure(3.6 * columns, 0.6 + 2.1 * rows)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for axes, (executors, load) in zip(grid, cases, strict=False):
        shown = table[(table["executors"] == executors) & (table["load"] == load)]
        plotting.curves.gain_over_share(shown, axes, legend=axes is grid[0])
        noun = "executor" if executors == 1 else "executors"
        axes.set_title(f"{executors} {noun}, load {100 * load:.0f} %", loc="left")
    for axes in grid[len(cases) :]:
        axes.remove()
    caption = (
        "Optimum by value iteration: one task per job, Poisson arrivals, short jobs of 10 s; no policy that "
        "sees only arrived jobs gains more."
    )
    return plotting.style.entitle(
        figure, "Largest possible gain from deliberate idling", caption, "two classes of jobs"
    )


EXPERIMENT = Experiment(
    "idle_slots",
    "Duan and Wu, Figure 1",
    compute,
    rooms=(*SPARK_ROOMS, "systems/spark/optimum"),
    figures=(fig1_idle_slot, idle_gain_map),
    tiny={"executors": [1, 2], "load": [0.6], "long_s": [50.0], "share": [0.5, 0.1], "step_s": 10.0},
)
