"""Best known placement, whether it is proved optimal, and bounds.

A job that is certain to find every earlier one finished begins a period of its own: with billing per second nothing
that was done before matters to it. Every period is searched exhaustively (:mod:`decima.systems.cloud.optimum.kernel`),
without voluntary waiting.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from decima.core.checks import check_whole
from decima.core.interrupts import check_stop
from decima.core.progress import progress_bar
from decima.core.system import Best
from decima.systems.cloud.optimum import kernel
from decima.systems.cloud.optimum.search import (
    Problem,
    find_empty,
    fresh_state,
    of_empty,
    places_taken,
    room_of_bound,
    search,
    whole,
)
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


# Nodes between two looks at signals and at the limit.
STEP = 5000
MOST_SEEN = 22  # two to this power: most nodes whose futures are remembered


def periods(problem: Problem) -> list[tuple[int, int]]:
    """Independent busy periods: (first job, last job + 1), by the latest ends."""
    arrival, ends = problem.jobs.arrival, of_empty(problem)[2]
    firsts = [job for job in range(len(problem)) if (ends[:job] <= arrival[job]).all()]
    return list(itertools.pairwise([*firsts, len(problem)]))


@dataclass(frozen=True)
class Solved:
    """Outcome of the search of one period."""

    counts: np.ndarray  # int64 [jobs, VMs], the best placement found
    loss: float
    nodes: int
    proved: bool  # whether the search came to its end, so that nothing is better


def solve_period(problem: Problem, nodes: int, begin: Callable[[int], tuple[float, np.ndarray]]) -> Solved:
    """Search a period that begins with an empty cluster.

    The search is done from every job that may find the cluster empty, last ones first: where a longer search finds it
    so, the rest is known.

    Args:
        problem: Its jobs.
        nodes: Most nodes of all these searches.
        begin: Function of a job that gives a placement to begin with of it and all later ones, on an empty cluster:
            its loss and executors per VM, int64 [jobs from there, VMs].
    """
    count, vms = len(problem), len(problem.vms.cores)
    taken = places_taken(problem)
    known = np.full(count + 1, np.nan)
    known[count] = 0.0
    period = kernel.Period(problem.jobs, problem.vms, problem.prices, problem.weights, taken, known)
    placements = np.zeros((count, count, vms), dtype=np.int64)
    spent = 0
    places = 1 << min(MOST_SEEN, nodes.bit_length())
    memory = _memory(problem, places)
    for start in [job for job in range(count - 1, -1, -1) if job == 0 or _may_be_empty(problem, job)]:
        loss, placements[start, start:] = begin(start)
        memory.seen[0][:] = 0
        if spent > nodes:
            continue  # what is known is the placement to begin with
        cursor = np.zeros(kernel.NUM_CURSOR, dtype=np.int64)
        cursor[kernel.DEPTH] = -1
        best = kernel.Best(np.array([loss]), whole(count, vms), whole(1))
        find_empty(problem, memory.state, start)
        while not (cursor[kernel.OVER] or cursor[kernel.TOO_MANY]) and spent + cursor[kernel.NODES] <= nodes:
            kernel.search_period(period, memory, start, cursor, best, STEP)
            check_stop()
        spent += int(cursor[kernel.NODES])
        loss, reached = float(best.loss[0]), int(best.reached[0])
        if reached:
            placements[start, start:reached] = best.counts[start:reached]
            if reached < count:
                placements[start, reached:] = placements[reached, reached:]
        if cursor[kernel.OVER]:
            known[start] = loss
    return Solved(placements[0], loss, spent, not np.isnan(known[0]))


def _may_be_empty(problem: Problem, job: int) -> bool:
    """Whether all jobs before one may have finished when it arrives."""
    arrival, least = problem.jobs.arrival, problem.jobs.least
    return bool((arrival[:job] + least[:job] <= arrival[job]).all())


def _memory(problem: Problem, places: int) -> kernel.Memory:
    rows, vms, size = len(problem) + 1, len(problem.vms.cores), kernel.CHILDREN
    lists = (
        whole(rows),
        whole(rows),
        np.zeros((rows, size, vms), dtype=np.int32),
        np.zeros((rows, size)),
        whole(rows, size),
    )
    scratch = whole(vms), whole(vms), whole(vms), room_of_bound(problem)
    return kernel.Memory(fresh_state(problem), lists, scratch, (np.zeros(places, dtype=np.uint64), np.zeros(places)))


def sub_workload(workload: PlacementWorkload, first: int, last: int) -> PlacementWorkload:
    """Some consecutive jobs of a workload."""
    return PlacementWorkload(workload.jobs[first:last], workload.label)


def exact_applies(settings: PlacementSettings) -> bool:
    """Whether the rules and the billing are those that periods are independent under."""
    rules = settings.rules
    plain = not (rules.clock_goes_back or rules.wait_frees_one) and rules.lookahead == "none"
    return plain and settings.billing.per_second


def plan_of(counts: np.ndarray) -> np.ndarray:
    """VM of every executor, int64 [executors], from executors per job and VM."""
    return np.array([vm for row in counts for vm, number in enumerate(row) for _ in range(number)], dtype=np.int64)


def counts_of(plan: np.ndarray, problem: Problem) -> np.ndarray:
    """Executors per job and VM, int64 [jobs, VMs], from the VM of every executor."""
    counts = np.zeros((len(problem), len(problem.vms.cores)), dtype=np.int64)
    np.add.at(counts, (np.repeat(np.arange(len(problem)), problem.jobs.executors), plan), 1)
    return counts
