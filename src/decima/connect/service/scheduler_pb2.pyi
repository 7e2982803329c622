# ruff: noqa
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OpenRequest(_message.Message):
    __slots__ = ("version", "client", "executors", "moving_delay_ms", "mode", "scheduler", "seed", "generator", "interarrival_ms", "shared_cluster", "delays", "running", "unlike")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    EXECUTORS_FIELD_NUMBER: _ClassVar[int]
    MOVING_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    GENERATOR_FIELD_NUMBER: _ClassVar[int]
    INTERARRIVAL_MS_FIELD_NUMBER: _ClassVar[int]
    SHARED_CLUSTER_FIELD_NUMBER: _ClassVar[int]
    DELAYS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    UNLIKE_FIELD_NUMBER: _ClassVar[int]
    version: int
    client: str
    executors: int
    moving_delay_ms: float
    mode: str
    scheduler: str
    seed: int
    generator: Pcg64
    interarrival_ms: float
    shared_cluster: str
    delays: bool
    running: bool
    unlike: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, version: _Optional[int] = ..., client: _Optional[str] = ..., executors: _Optional[int] = ..., moving_delay_ms: _Optional[float] = ..., mode: _Optional[str] = ..., scheduler: _Optional[str] = ..., seed: _Optional[int] = ..., generator: _Optional[_Union[Pcg64, _Mapping]] = ..., interarrival_ms: _Optional[float] = ..., shared_cluster: _Optional[str] = ..., delays: _Optional[bool] = ..., running: _Optional[bool] = ..., unlike: _Optional[_Iterable[str]] = ...) -> None: ...

class Pcg64(_message.Message):
    __slots__ = ("state_high", "state_low", "increment_high", "increment_low")
    STATE_HIGH_FIELD_NUMBER: _ClassVar[int]
    STATE_LOW_FIELD_NUMBER: _ClassVar[int]
    INCREMENT_HIGH_FIELD_NUMBER: _ClassVar[int]
    INCREMENT_LOW_FIELD_NUMBER: _ClassVar[int]
    state_high: int
    state_low: int
    increment_high: int
    increment_low: int
    def __init__(self, state_high: _Optional[int] = ..., state_low: _Optional[int] = ..., increment_high: _Optional[int] = ..., increment_low: _Optional[int] = ...) -> None: ...

class OpenReply(_message.Message):
    __slots__ = ("session", "version", "scheduler", "lease_ms", "command")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    session: str
    version: int
    scheduler: str
    lease_ms: int
    command: Command
    def __init__(self, session: _Optional[str] = ..., version: _Optional[int] = ..., scheduler: _Optional[str] = ..., lease_ms: _Optional[int] = ..., command: _Optional[_Union[Command, _Mapping]] = ...) -> None: ...

class DecideRequest(_message.Message):
    __slots__ = ("session", "sequence", "full", "time_ms", "executors", "offer", "jobs", "states", "gone")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    FULL_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    EXECUTORS_FIELD_NUMBER: _ClassVar[int]
    OFFER_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    session: str
    sequence: int
    full: bool
    time_ms: float
    executors: int
    offer: Offer
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    states: _containers.RepeatedCompositeFieldContainer[JobState]
    gone: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, session: _Optional[str] = ..., sequence: _Optional[int] = ..., full: _Optional[bool] = ..., time_ms: _Optional[float] = ..., executors: _Optional[int] = ..., offer: _Optional[_Union[Offer, _Mapping]] = ..., jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., states: _Optional[_Iterable[_Union[JobState, _Mapping]]] = ..., gone: _Optional[_Iterable[str]] = ...) -> None: ...

class Offer(_message.Message):
    __slots__ = ("job", "executors", "stage")
    JOB_FIELD_NUMBER: _ClassVar[int]
    EXECUTORS_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    job: str
    executors: int
    stage: int
    def __init__(self, job: _Optional[str] = ..., executors: _Optional[int] = ..., stage: _Optional[int] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("job", "name", "profile", "arrival_ms", "priority", "cap", "stages")
    JOB_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    ARRIVAL_MS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    CAP_FIELD_NUMBER: _ClassVar[int]
    STAGES_FIELD_NUMBER: _ClassVar[int]
    job: str
    name: str
    profile: str
    arrival_ms: float
    priority: float
    cap: float
    stages: _containers.RepeatedCompositeFieldContainer[Stage]
    def __init__(self, job: _Optional[str] = ..., name: _Optional[str] = ..., profile: _Optional[str] = ..., arrival_ms: _Optional[float] = ..., priority: _Optional[float] = ..., cap: _Optional[float] = ..., stages: _Optional[_Iterable[_Union[Stage, _Mapping]]] = ...) -> None: ...

class Stage(_message.Message):
    __slots__ = ("stage", "name", "num_tasks", "parents", "duration_ms", "duration_known")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUM_TASKS_FIELD_NUMBER: _ClassVar[int]
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    DURATION_KNOWN_FIELD_NUMBER: _ClassVar[int]
    stage: int
    name: str
    num_tasks: int
    parents: _containers.RepeatedScalarFieldContainer[int]
    duration_ms: float
    duration_known: bool
    def __init__(self, stage: _Optional[int] = ..., name: _Optional[str] = ..., num_tasks: _Optional[int] = ..., parents: _Optional[_Iterable[int]] = ..., duration_ms: _Optional[float] = ..., duration_known: _Optional[bool] = ...) -> None: ...

class JobState(_message.Message):
    __slots__ = ("job", "attached", "moving", "committed", "outgoing", "runnable", "schedulable", "stages", "delayed")
    JOB_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    MOVING_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    OUTGOING_FIELD_NUMBER: _ClassVar[int]
    RUNNABLE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULABLE_FIELD_NUMBER: _ClassVar[int]
    STAGES_FIELD_NUMBER: _ClassVar[int]
    DELAYED_FIELD_NUMBER: _ClassVar[int]
    job: str
    attached: int
    moving: int
    committed: int
    outgoing: int
    runnable: _containers.RepeatedScalarFieldContainer[int]
    schedulable: _containers.RepeatedScalarFieldContainer[int]
    stages: _containers.RepeatedCompositeFieldContainer[StageState]
    delayed: _containers.RepeatedCompositeFieldContainer[DelayedStage]
    def __init__(self, job: _Optional[str] = ..., attached: _Optional[int] = ..., moving: _Optional[int] = ..., committed: _Optional[int] = ..., outgoing: _Optional[int] = ..., runnable: _Optional[_Iterable[int]] = ..., schedulable: _Optional[_Iterable[int]] = ..., stages: _Optional[_Iterable[_Union[StageState, _Mapping]]] = ..., delayed: _Optional[_Iterable[_Union[DelayedStage, _Mapping]]] = ...) -> None: ...

class DelayedStage(_message.Message):
    __slots__ = ("stage", "withheld", "end_ms")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    WITHHELD_FIELD_NUMBER: _ClassVar[int]
    END_MS_FIELD_NUMBER: _ClassVar[int]
    stage: int
    withheld: bool
    end_ms: float
    def __init__(self, stage: _Optional[int] = ..., withheld: _Optional[bool] = ..., end_ms: _Optional[float] = ...) -> None: ...

class StageState(_message.Message):
    __slots__ = ("stage", "launched", "finished", "executors", "moving", "committed", "measured_tasks", "measured_ms", "running_since_ms")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    LAUNCHED_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    EXECUTORS_FIELD_NUMBER: _ClassVar[int]
    MOVING_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    MEASURED_TASKS_FIELD_NUMBER: _ClassVar[int]
    MEASURED_MS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    stage: int
    launched: int
    finished: int
    executors: int
    moving: int
    committed: int
    measured_tasks: int
    measured_ms: float
    running_since_ms: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, stage: _Optional[int] = ..., launched: _Optional[int] = ..., finished: _Optional[int] = ..., executors: _Optional[int] = ..., moving: _Optional[int] = ..., committed: _Optional[int] = ..., measured_tasks: _Optional[int] = ..., measured_ms: _Optional[float] = ..., running_since_ms: _Optional[_Iterable[float]] = ...) -> None: ...

class Decision(_message.Message):
    __slots__ = ("sequence", "idle", "job", "stage", "limit", "executors", "decide_us", "command", "delay_ms", "executor_class")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    IDLE_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    EXECUTORS_FIELD_NUMBER: _ClassVar[int]
    DECIDE_US_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    EXECUTOR_CLASS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    idle: bool
    job: str
    stage: int
    limit: int
    executors: int
    decide_us: float
    command: Command
    delay_ms: float
    executor_class: int
    def __init__(self, sequence: _Optional[int] = ..., idle: _Optional[bool] = ..., job: _Optional[str] = ..., stage: _Optional[int] = ..., limit: _Optional[int] = ..., executors: _Optional[int] = ..., decide_us: _Optional[float] = ..., command: _Optional[_Union[Command, _Mapping]] = ..., delay_ms: _Optional[float] = ..., executor_class: _Optional[int] = ...) -> None: ...

class Command(_message.Message):
    __slots__ = ("number", "target", "ask")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    number: int
    target: int
    ask: bool
    def __init__(self, number: _Optional[int] = ..., target: _Optional[int] = ..., ask: _Optional[bool] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: str
    def __init__(self, session: _Optional[str] = ...) -> None: ...

class CloseRequest(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: str
    def __init__(self, session: _Optional[str] = ...) -> None: ...

class CloseReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
