"""Job graphs that clients send: checked, and laid out as arrays with nominal durations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.dag import Dag
from decima.connect.service.durations import Durations, Measured, ProfileBook
from decima.connect.service.errors import exhausted, invalid
from decima.connect.service.limits import Limits
from decima.connect.service.wire import checked_number
from decima.core.checks import LARGEST_MS

_SHOWN = 10  # stages of a cycle that an error names


class JobGraph:
    """Job as a client described it: everything but its state.

    Attributes:
        label: The client's id of the job, for error messages.
        stage_ids: The client's stage ids in its order, which is that of the stages in the mirror.
        index: Local index by stage id.
        dag: Stages and edges.
        durations: Nominal durations.
        finished: Per stage, finished tasks as the client says.
        schedulable: Local indices of the stages that may be chosen, as the client says.
        runnable_ids: Ids of the runnable stages as the mirror has them, None if it does not have them.
        schedulable_ids: The same for those that may be chosen.
        running_since_ms: Begin of the tasks that run, by local index of their stage, as the client says.
        known_work_ms: Total work after its profile, 0 if it has none.
    """

    def __init__(
        self, message: protocol.Job, stage_ids: Sequence[int], dag: Dag, durations: Durations, known_work_ms: float
    ) -> None:
        self.label = message.job
        self.arrival_ms, self.priority, self.cap = message.arrival_ms, message.priority, message.cap
        self.stage_ids = tuple(stage_ids)
        self.index = {stage: index for index, stage in enumerate(self.stage_ids)}
        self.dag = dag
        self.durations = durations
        self.known_work_ms = known_work_ms
        self.forget_state()

    def forget_state(self) -> None:
        """Know nothing of what was reported but the durations."""
        self.finished = [0] * len(self.stage_ids)
        self.schedulable: list[int] = []
        self.runnable_ids: list[int] | None = None
        self.schedulable_ids: list[int] | None = None
        self.running_since_ms: dict[int, list[float]] = {}

    def continues(self, old: JobGraph) -> None:
        """Take over what was learned of the same job when it had fewer stages.

        Raises:
            RefusalError: Its old stages have changed.
        """
        count = len(old.stage_ids)
        if self.stage_ids[:count] != old.stage_ids or not self.dag.begins_with(old.dag):
            raise invalid(f"job {self.label!r:.60} was sent again, but its first {count} stages are not those it had")
        self.durations.continues(old.durations)
        self.finished[:count] = old.finished
        self.schedulable = old.schedulable
        self.running_since_ms = old.running_since_ms

    def nominal(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Nominal durations of the stages and what follows from them.

        Returns:
            Durations [stages]; work of the heaviest path down from each stage [stages]; time of the longest path down
            from each stage [stages]; work of the job; all in ms.
        """
        durations = np.array(self.durations.nominal_ms())
        works = durations * self.dag.tasks
        path_work = self.dag.longest_path_down(works)
        path = self.dag.longest_path_down(durations)
        return durations, path_work, path, max(math.fsum(works.tolist()), self.known_work_ms)


def read_graph(message: protocol.Job, book: ProfileBook, limits: Limits, session: Measured) -> JobGraph:
    """Check a description of a job and return its graph.

    Raises:
        RefusalError: The description is wrong, or too large.
    """
    where = f"job {message.job!r:.60}"
    if not message.job or len(message.job) > limits.text:
        raise invalid(f"a job id is {message.job!r:.60}; expected 1 to {limits.text} characters")
    for name in ("name", "profile"):
        if len(getattr(message, name)) > limits.text:
            raise invalid(f"{where}: {name} is longer than {limits.text} characters")
    for name in ("arrival_ms", "priority", "cap"):
        checked_number(where, name, getattr(message, name), low=-LARGEST_MS)
    stages = message.stages
    if not stages:
        raise invalid(f"{where} has no stages; expected at least one")
    limits.check("job_stages", len(stages), f"{where} has {len(stages)} stages")
    index: dict[int, int] = {}
    tasks, stated, num_parents, parents = [], [], [], []
    for position, stage in enumerate(stages):
        index[stage.stage] = position
        if not 1 <= stage.num_tasks <= limits.tasks:
            raise invalid(f"{where}, stage {stage.stage}: num_tasks is {stage.num_tasks}; expected 1 to {limits.tasks}")
        tasks.append(stage.num_tasks)
        duration_ms = checked_number(f"{where}, stage {stage.stage}", "duration_ms", stage.duration_ms)
        stated.append(duration_ms if stage.duration_known or duration_ms else None)
        num_parents.append(len(stage.parents))
        parents.extend(stage.parents)
        if len(parents) > limits.job_edges:
            raise exhausted(f"{where} has more edges than the {limits.job_edges} that the service takes (job_edges)")
    stage_ids = list(index)
    if len(stage_ids) < len(stages):
        raise invalid(f"{where}: a stage id is given twice")
    dag = _dag(where, stage_ids, index, tasks, num_parents, parents)
    known = stated
    profile = book.find(message.profile)
    if profile is not None:
        profiled = book.durations_ms(message.profile, dag)
        known = [profiled_ms if ms is None else ms for ms, profiled_ms in zip(stated, profiled, strict=True)]
    return JobGraph(message, stage_ids, dag, Durations(known, session), 0.0 if profile is None else profile.work_ms)


def _dag(
    where: str,
    stage_ids: list[int],
    index: dict[int, int],
    tasks: list[int],
    num_parents: list[int],
    parents: list[int],
) -> Dag:
    """Check the edges between stages whose parents are identified by id."""
    try:
        local = [index[parent] for parent in parents]
    except KeyError as error:
        stage = stage_ids[_owner(num_parents, parents.index(error.args[0]))]
        raise invalid(f"{where}, stage {stage}: there is no parent {error.args[0]}") from None
    dag = Dag.of_lists(tasks, num_parents, local)
    if (wrong := dag.wrong_parent()) >= 0:
        offset, _ = dag.parents
        above = parents[offset[wrong] : offset[wrong + 1]]
        mistake = "is its own parent" if stage_ids[wrong] in above else f"has a parent twice: {above!s:.60}"
        raise invalid(f"{where}, stage {stage_ids[wrong]} {mistake}")
    if cycle := dag.cycle():
        names = [str(stage_ids[stage]) for stage in cycle[:_SHOWN]]
        end = names[0] if len(cycle) <= _SHOWN else f"... ({len(cycle)} stages)"
        raise invalid(f"{where}: stages form a cycle: {' -> '.join([*names, end])}; expected a DAG")
    return dag


def _owner(num_parents: list[int], position: int) -> int:
    """Index of the stage that owns an entry in the concatenated list of parents."""
    return int(np.searchsorted(np.cumsum(num_parents), position, side="right"))
