"""A second system, as small as one can be: a single machine that works off jobs one after the other."""

from dataclasses import asdict, dataclass, field

import numpy as np
import pandas

from decima.core.decision import Parameter
from decima.core.errors import ConfigError
from decima.core.objectives import Outcome, get_objective
from decima.core.system import TASK_COLUMNS


@dataclass(frozen=True)
class MachineSettings:
    speed: float = 1.0

    @classmethod
    def of_mode(cls, mode="paper", **fields):
        return cls(**fields)

    @property
    def label(self):
        return f"one machine of speed {self.speed:g}"

    def as_dict(self):
        return asdict(self)


@dataclass(frozen=True)
class Orders:
    arrivals_s: tuple
    durations_s: tuple
    label: str = "orders"

    @property
    def arrival_ms(self):
        return 1000.0 * np.array(self.arrivals_s)

    def __len__(self):
        return len(self.arrivals_s)

    def signature(self):
        return repr((self.arrivals_s, self.durations_s))


@dataclass
class Rule:
    """Chooses the job that has waited long and takes little time, by the weight of the time it takes."""

    name: str = "rule"
    values: dict = field(default_factory=dict)
    concurrent = True
    parameters = (Parameter("haste", 1.0, 0.0, 10.0, "Weight of the duration.", tunable=True),)

    def __post_init__(self):
        self.values = {"haste": 1.0} | self.values

    def choose(self, waiting, now_ms, arrival_ms, duration_ms):
        return min(waiting, key=lambda job: self.values["haste"] * duration_ms[job] + arrival_ms[job])


@dataclass
class Machine:
    """State: what ran from when to when."""

    orders: Orders
    settings: MachineSettings
    start_ms: np.ndarray = None
    completion_ms: np.ndarray = None


@dataclass(frozen=True)
class MachineResult:
    workload: Orders
    settings: MachineSettings
    scheduler: str
    seed: int
    start_ms: np.ndarray
    outcome: Outcome
    num_executors: int = 1

    def score(self, objective):
        return get_objective(objective).score(self.outcome)

    def task_frame(self):
        jobs = np.arange(len(self.workload))
        columns = (jobs, 0 * jobs, 0 * jobs, self.start_ms / 1000.0, self.outcome.completion_ms / 1000.0, "run")
        return pandas.DataFrame(dict(zip(TASK_COLUMNS, columns, strict=True)))


class SingleMachine:
    name = "single_machine"
    label = "single machine"
    settings_type = MachineSettings
    workload_type = Orders
    scored = ("avg_jct", "makespan")

    def read_jobs(self, text):
        raise ConfigError(f"the single machine has no source of jobs {text!r}")

    def tables(self, workload, settings):
        return workload

    def state(self, tables, settings, *, log=False):
        return Machine(tables, settings)

    def give(self, state, arrays):
        raise ConfigError("the single machine takes no arrays")

    def run(self, state, scheduler, seed):
        orders = state.orders
        noise = np.random.default_rng(seed).uniform(0.5, 1.5, len(orders))
        duration_ms = 1000.0 * noise * np.array(orders.durations_s) / state.settings.speed
        state.start_ms, state.completion_ms = np.empty(len(orders)), np.empty(len(orders))
        left, now_ms = set(range(len(orders))), 0.0
        while left:
            now_ms = max(now_ms, min(orders.arrival_ms[list(left)]))
            waiting = sorted(job for job in left if orders.arrival_ms[job] <= now_ms)
            job = scheduler.choose(waiting, now_ms, orders.arrival_ms, duration_ms)
            state.start_ms[job] = now_ms
            now_ms = state.completion_ms[job] = now_ms + duration_ms[job]
            left.remove(job)

    def outcome(self, state):
        ideal_ms = 1000.0 * np.array(state.orders.durations_s) / state.settings.speed
        return Outcome(state.orders.arrival_ms, state.completion_ms.copy(), ideal_ms)

    def result(self, state, scheduler, seed):
        return MachineResult(state.orders, state.settings, scheduler, seed, state.start_ms.copy(), self.outcome(state))

    def make_scheduler(self, scheduler, **parameters):
        if not isinstance(scheduler, str):
            return scheduler
        if scheduler not in self.list_schedulers():
            raise ConfigError(f"the single machine has no scheduler {scheduler!r}")
        return Rule(scheduler, parameters if scheduler == "rule" else {"haste": 0.0})

    def list_schedulers(self):
        return ["in_order", "rule"]

    def objectives(self):
        return ["avg_jct", "makespan", "slowdown"]
