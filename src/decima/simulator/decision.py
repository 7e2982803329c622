"""The parts of a decision, written once: the compiled core, logs, replay, environment, service and plugin follow them.

A decision says which stage gets executors; every further part is a whole number with a default. A part is added as one
entry of :data:`PARTS` and by the code that gives it a meaning: rules of the core, and schedulers that choose it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One part of a decision.

    Attributes:
        name: Name in messages, in rows of three or more numbers and in the service protocol.
        attribute: Name in :class:`decima.schedulers.Decision`.
        column: Name in the decision log.
        default: Value where a scheduler does not say.
        low: Least value in actions of the Gymnasium environment.
        extent: Number of values there, by its name in :class:`decima.simulator.gym.padded.Padding`.
        doc: Meaning.
    """

    name: str
    attribute: str
    column: str
    default: int
    low: int
    extent: str
    doc: str


PARTS = (
    Part("stage", "stage", "stage", -1, 0, "slots", "stage id, -1: idle; in logs the index inside its job"),
    Part("limit", "parallelism_limit", "limit_requested", 0, 1, "executors", "executors for its job, or to use"),
)
# Places in the array ``action`` of the cluster state.
STAGE, LIMIT = 0, 1
OPTION_PARTS = PARTS[1:]
NUM_PARTS = len(PARTS)
DEFAULTS = tuple(part.default for part in PARTS)

# The decision log: the offer, the job, stage and limit, the executors they took. Further parts follow, so that the
# columns before them never move.
_OFFER = ("time_ms", "source_job", "num_source_exec", "frontier_size", "job")
_COLUMNS = tuple(part.column for part in PARTS)
DECISION_COLUMNS = (*_OFFER, *_COLUMNS[: LIMIT + 1], "executors_used", *_COLUMNS[LIMIT + 1 :])
#: Columns of the decision log that hold -1 for none.
NONE_COLUMNS = ("source_job", "job", "stage")
NUM_COLUMNS = len(DECISION_COLUMNS)
JOB_COLUMN, USED_COLUMN = DECISION_COLUMNS.index("job"), DECISION_COLUMNS.index("executors_used")
#: Column of every part.
PART_COLUMNS = tuple(DECISION_COLUMNS.index(column) for column in _COLUMNS)
