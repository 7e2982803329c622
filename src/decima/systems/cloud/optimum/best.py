"""Best known placement, whether it is proved optimal, and bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from decima.core.checks import check_whole
from decima.core.progress import progress_bar
from decima.core.system import Best
from decima.systems.cloud.optimum.periods import counts_of, exact_applies, periods, plan_of, solve_period, sub_workload
from decima.systems.cloud.optimum.problem import Problem
from decima.systems.cloud.optimum.search import search
from decima.systems.cloud.result import PlacementResult
from decima.systems.cloud.schedulers.compiled import PREPARED
from decima.systems.cloud.schedulers.registry import CompiledRule
from decima.systems.cloud.settings import PlacementSettings
from decima.systems.cloud.state import give_plan
from decima.systems.cloud.system import VM_PLACEMENT, Episode, simulate
from decima.systems.cloud.workload import PlacementWorkload

EXACT, SEARCHED = "exact optimum", "best found by search"
FEW_NODES, PERIOD_BUDGET = 20_000, 20_000  # nodes before a period is searched, and plans of that search
# Rules whose results searches begin with.
STARTS = ("ilp_exact", "ilp_beta", "good_first", "gio", "fill")


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best placement known, and bounds."""

    result: PlacementResult  # the episode
    status: str  # ``"exact optimum"`` or ``"best found by search"``
    waits_allowed: bool  # whether voluntary waits were looked for
    periods: int  # independent busy periods
    proved_periods: int  # those solved exactly
    nodes: int  # placements tried by the exact search
    work_bound: float  # least cost of the cores or the memory that the jobs take; 0 where the clock may go back
    # Least cost without voluntary waits, period by period the higher of the work and of what VMs in use need moment by
    # moment; None under rules or billing that it does not hold for.
    interval_bound: float | None
    # R_epi that nothing of the kind that was looked for can exceed; None where the clock may go back.
    reward_bound: float | None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        names = ("waits_allowed", "periods", "proved_periods", "nodes", "work_bound", "interval_bound", "reward_bound")
        values = {name: getattr(self, name) for name in names}
        return {"kind": self.status} | values | {"result": self.result.as_dict()}


def optimum(
    workload: PlacementWorkload,
    settings: PlacementSettings | None = None,
    *,
    nodes: int = 2_000_000,
    budget: int = 100_000,
    waits: bool = False,
    seed: int = 0,
    progress: str | None = None,
) -> Optimum:
    """Find the best placement of a workload whose arrivals and run times are known.

    Exact where every busy period can be searched to its end: then no placement without voluntary waits has a greater
    R_epi. Else, and for rules or billing under which periods depend on each other, an offline search continues from
    the best that is known. Waiting may reach more than the exact optimum without.

    Args:
        workload: The jobs.
        settings: VMs, billing, beta, rules; the paper's when omitted.
        nodes: Most placements to try in one period; 0 for no exact search.
        budget: Plans to try in the search.
        waits: Also look for voluntary waits, by search.
        seed: Random seed of the search.
        progress: Label of a progress bar; None for no bar.

    Raises:
        DecimaError: Bad input.
    """
    check_whole("nodes", nodes, least=0)
    settings = PlacementSettings() if settings is None else settings
    problem = Problem.of(workload, settings)
    starts = [simulate(workload, name, settings) for name in STARTS]
    plans = [result.where for result in starts if result.complete]
    exact = nodes > 0 and exact_applies(settings)
    spans, proved, spent, exact_loss = periods(problem), 0, 0, 0.0
    if exact:
        best = []
        with progress_bar(progress, len(spans), "period") as bar:
            for first, last in spans:
                solved = _best_of_period(problem, workload, settings, first, last, nodes, seed)
                best.append(plan_of(solved.counts))
                spent += solved.nodes
                proved += solved.proved
                part = problem.part(first, last)
                exact_loss += solved.loss if solved.proved else part.least_loss(part.cost_bound())
                bar.update()
        plans.append(np.concatenate(best))
    status, chosen, counts = EXACT, plans[-1], None
    if not exact or proved < len(spans) or waits:
        status = SEARCHED
        label = progress and f"{progress}, search"
        chosen, counts = search(workload, settings, plans, budget=budget, waits=waits, seed=seed, progress=label)
    result = _follow(workload, settings, chosen, counts, status)
    interval = reward_bound = None
    if exact_applies(settings):
        interval = sum(problem.part(*each).cost_bound() for each in spans)
    if not settings.rules.clock_goes_back:
        loss = exact_loss
        if waits or not exact:
            loss = problem.least_loss(problem.work_bound() if waits or interval is None else interval)
        constant = settings.beta + (1.0 - settings.beta) * (1.0 + 100.0 / settings.rules.penalty_percent)
        reward_bound = float(settings.rules.fixed_reward * constant - loss)
    work = problem.work_bound() if not settings.rules.clock_goes_back else 0.0
    return Optimum(result, status, waits, len(spans), proved, spent, work, interval, reward_bound)


def best_run(workload: PlacementWorkload, settings: PlacementSettings, budget: int, seed: int) -> Best:
    """The placement of the greatest reward without voluntary waits: exact, or else by search."""
    best = optimum(workload, settings, budget=budget, seed=seed)
    return Best(best.result, "reward", best.result.reward, best.reward_bound, best.status == EXACT, "")


def _follow(workload, settings, wanted, waits, name) -> PlacementResult:
    """Run a plan; executors that do not fit go where they cost least."""
    episode = Episode.of(workload, settings)
    give_plan(episode.state, wanted, waits)
    episode.run(CompiledRule(name, PREPARED), 0)
    return VM_PLACEMENT.result(episode, name, 0).require_complete()


def _best_of_period(problem, workload, settings, first, last, nodes, seed):
    """Search a period from heuristics or an annealed plan."""
    part, jobs = problem.part(first, last), sub_workload(workload, first, last)
    rules = ("ilp_exact", f"ilp_beta:beta={settings.beta}", "good_first")
    starts: dict[int, tuple[float, np.ndarray]] = {}

    def loss_and_counts(result: PlacementResult, start: int) -> tuple[float, np.ndarray]:
        return part.loss(result.job_cost, result.run_s), counts_of(result.where, part.part(start, len(part)))

    def begin(start: int) -> tuple[float, np.ndarray]:
        if start not in starts:
            rest = sub_workload(jobs, start, len(jobs))
            options = [loss_and_counts(simulate(rest, name, settings), start) for name in rules]
            starts[start] = min(options, key=lambda pair: pair[0])
        return starts[start]

    solved = solve_period(part, min(nodes, FEW_NODES), begin)
    if not solved.proved and nodes > FEW_NODES:
        # A better placement to begin with rules more out.
        wanted, _ = search(jobs, settings, [plan_of(solved.counts)], budget=PERIOD_BUDGET, seed=seed)
        better = loss_and_counts(_follow(jobs, settings, wanted, None, SEARCHED), 0)
        starts[0] = min((solved.loss, solved.counts), better, key=lambda pair: pair[0])
        solved = solve_period(part, nodes, begin)
    return solved
