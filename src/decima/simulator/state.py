"""``ClusterState``: the memory of one run, seen from Python as NumPy arrays and from compiled code as a pointer."""

import numpy as np

from decima.compiled.random import generator_addresses
from decima.exceptions import DeadlockError, InvalidDecisionError
from decima.simulator import engine
from decima.simulator.fields import ARRAYS, CLUSTER, SCALARS
from decima.simulator.settings import Settings
from decima.simulator.tables import WorkloadTables

_NONE_FILLED = (
    "executor_job",
    "executor_stage",
    "executor_last",
    "executor_destination",
    "executor_pool",
    "pool_head",
    "pool_tail",
    "commit_head",
    "commit_tail",
    "runnable_head",
    "runnable_tail",
)
_INVALID = {
    engine.NOT_IN_FRONTIER: "it is not in the frontier",
    engine.LIMIT_TOO_SMALL: "the limit gives it no executor",
    engine.LIMIT_TOO_LARGE: "the limit exceeds the executors offered",
    engine.IDLE_TWICE: "idling was already chosen in this round",
}


class ClusterState:
    """State of one simulated cluster.

    Every field of :mod:`decima.simulator.fields` is an attribute: scalars as Python numbers, arrays as NumPy views
    (no copies). ``start`` begins a run, ``advance`` continues it; both may be repeated on the same object.
    """

    def __init__(
        self,
        tables: WorkloadTables,
        settings: Settings,
        *,
        log_tasks: bool = False,
        log_decisions: bool = False,
    ) -> None:
        self.tables = tables
        self.settings = settings
        self.policy: object | None = None  # the learned policy whose fields are bound
        executors = int(settings.executors)
        commits = executors + 8
        extents = {
            "stage": tables.num_stages,
            "job": tables.num_jobs,
            "executor": executors,
            "pool": tables.num_jobs + 1,
            "source": tables.num_stages + tables.num_jobs + 1,
            "commit": commits,
        }
        self._header = np.zeros(1, dtype=CLUSTER.header_dtype)
        self._scalars = self._header[0]
        self._arrays: dict[str, np.ndarray] = {}
        self._set_extents(extents)
        log_rows = tables.num_tasks if log_tasks else 0
        for name, field in ARRAYS.items():
            if field.extent == "log" and name != "decision_rows":
                self._own(name, np.zeros(log_rows, dtype=field.dtype))
        self._own("decision_rows", np.zeros((1024 if log_decisions else 0, 8)))
        for name, array in tables.arrays.items():
            self._own(name, array)
        self._fixed = {
            "num_jobs": tables.num_jobs,
            "num_stages": tables.num_stages,
            "num_executors": executors,
            "num_commits": commits,
            "grid_width": tables.grid_width,
            "num_arrivals": len(tables.arrays["arrival_order"]),
            "sampled": settings.durations == "sampled",
            "job_limit": settings.job_limit,
            "reoffer": settings.reoffer,
            "commit_ahead": settings.commit_ahead,
            "keep_warm": settings.keep_warm,
            "runnable_only": settings.runnable_only,
            "log_tasks": log_tasks,
            "log_decisions": log_decisions,
            "moving_delay_ms": settings.moving_delay_ms if settings.startup else 0.0,
            "time_limit_ms": settings.time_limit_ms if settings.time_limit_applies else np.inf,
        }

    def _set_extents(self, extents: dict[str, int]) -> None:
        """One block of memory for all owned arrays, so that a reset is one fill."""
        owned = [field for field in ARRAYS.values() if field.extent in extents]
        sizes = [-(-extents[field.extent] * field.dtype.itemsize // 64) * 64 for field in owned]
        self._block = np.zeros(sum(sizes), dtype=np.uint8)
        offset = 0
        for field, size in zip(owned, sizes, strict=True):
            count = extents[field.extent]
            view = self._block[offset : offset + count * field.dtype.itemsize].view(field.dtype)
            self._own(field.name, view)
            offset += size

    def _own(self, name: str, array: np.ndarray) -> None:
        """Bind an array to a field."""
        if array.dtype != ARRAYS[name].dtype or not array.flags.c_contiguous:
            raise TypeError(f"field {name} wants contiguous {ARRAYS[name].dtype}, got {array.dtype}")
        self._arrays[name] = array
        self._scalars[name] = array.ctypes.data

    def bind(self, name: str, array) -> None:
        """Give the run its own copy of a static array (``params``, ``job_priority``, ``job_cap``)."""
        self._own(name, np.array(array, dtype=ARRAYS[name].dtype).reshape(-1))

    def bind_policy(self, arrays: dict[str, np.ndarray], numbers: dict[str, float]) -> None:
        """Give the run the fields of a learned policy, not copied; they stay bound until others take their place.

        Args:
            arrays: Fields of extent ``"policy"``.
            numbers: Scalars, for this run if one is under way and for all that start later.
        """
        for name, array in arrays.items():
            self._own(name, array)
        for name, value in numbers.items():
            self._fixed[name] = value
            self._scalars[name] = value

    def put(self, **numbers: float) -> None:
        """Overwrite scalars: for a state that mirrors a cluster kept elsewhere (``decima.service``)."""
        for name, value in numbers.items():
            self._scalars[name] = value

    def __getattr__(self, name: str):
        if name in SCALARS:
            return self._scalars[name].item()
        try:
            return self.__dict__["_arrays"][name]
        except KeyError:
            raise AttributeError(f"the cluster state has no field {name!r}") from None

    @property
    def address(self) -> int:
        """Address that compiled entry points take; valid while this object lives."""
        return self._header.ctypes.data

    def start(self, rng: np.random.Generator, policy_rng: np.random.Generator, decide_fn: int = 0) -> None:
        """Begin a run at time 0 with every executor free.

        Args:
            rng: Source of task durations.
            policy_rng: Source of chance of a compiled scheduler.
            decide_fn: Address of a compiled scheduler, 0 if decisions come through :meth:`decide`.
        """
        for name in SCALARS:
            self._scalars[name] = self._fixed.get(name, 0)
        self._block.fill(0)
        for name in _NONE_FILLED:
            self._arrays[name].fill(-1)
        self._arrays["job_finish_ms"].fill(np.nan)
        self._arrays["stage_finish_ms"].fill(np.nan)
        self._generators = (rng, policy_rng)  # their memory must outlive the run
        self._scalars["duration_rng"], self._scalars["duration_next"] = generator_addresses(rng)
        self._scalars["policy_rng"], self._scalars["policy_next"] = generator_addresses(policy_rng)
        self._scalars["decide_fn"] = decide_fn
        self._scalars["max_decisions_logged"] = len(self._arrays["decision_rows"])
        engine.reset(self.address)

    def advance(self) -> bool:
        """Run to the next decision of the caller (True) or to the end (False).

        Raises:
            InvalidDecisionError: A decision cannot be carried out.
            DeadlockError: No event is left and jobs are unfinished.
        """
        while True:
            code = engine.advance(self.address)
            if code == engine.LOG_FULL:
                rows = self._arrays["decision_rows"]
                self._own("decision_rows", np.concatenate([rows, np.zeros_like(rows)]))
                self._scalars["max_decisions_logged"] = 2 * len(rows)
                continue
            if code == engine.INVALID:
                raise InvalidDecisionError(self.describe_invalid())
            if code == engine.DEADLOCK:
                waiting = np.flatnonzero(self.job_state == 1)
                raise DeadlockError(
                    f"no event is left at {self.now_ms / 1000:.1f} s but {len(waiting)} of {self.num_jobs} jobs are "
                    f"unfinished (first: job {waiting[0]}): the scheduler parked every executor"
                )
            return code == engine.NEEDS_DECISION

    def decide(self, stage: int, limit: int) -> None:
        """Hand over a decision for the open round; :meth:`advance` carries it out.

        Args:
            stage: Stage id, -1 to idle.
            limit: Parallelism limit of the stage's job (``job_limit``), else executors of this source to use.
        """
        self._scalars["action_stage"] = stage
        self._scalars["action_limit"] = limit
        self._scalars["has_action"] = 1

    def frontier(self) -> np.ndarray:
        """Stage ids that may be chosen now, jobs in order of arrival, stages by index."""
        members = np.flatnonzero(self.stage_in_frontier)
        rank = np.zeros(self.num_jobs, dtype=np.int64)
        active = self.active[: self.num_active]
        rank[active] = np.arange(len(active))
        return members[np.argsort(rank[self.stage_job[members]], kind="stable")]

    def describe_invalid(self) -> str:
        """Why the decision in ``action_*`` cannot be carried out."""
        stage, limit = self.action_stage, self.action_limit
        if self.net_invalid:
            return (
                f"decision {self.num_decisions} at {self.now_ms / 1000:.3f} s: the policy has no choice: a score of "
                "its network is not a finite number; the weights are too large"
            )
        if stage == -1:
            what = "idling"
        elif 0 <= stage < self.num_stages:
            job = self.stage_job[stage]
            what = f"stage {stage - self.job_first_stage[job]} of job {job}"
        else:
            what = f"stage id {stage}"
        frontier = [
            (int(self.stage_job[s]), int(s - self.job_first_stage[self.stage_job[s]]))
            for s in self.frontier()
        ]
        shown = ", ".join(map(str, frontier[:8])) + (", ..." if len(frontier) > 8 else "")
        return (
            f"decision {self.num_decisions} at {self.now_ms / 1000:.3f} s: cannot choose {what} with limit {limit}: "
            f"{_INVALID[self.error]}; executors offered: {self.num_source}; (job, stage) that can be chosen: [{shown}]"
        )
