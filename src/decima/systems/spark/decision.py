"""The parts of a decision, which core, logs, replay, environment and service follow.

A decision names a stage that gets executors; every further part is a number with a default. A part is one entry
of :data:`PARTS` and the code that gives it a meaning: rules of the core, and schedulers that choose it.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One part of a decision.

    Attributes:
        name: Name in messages, in rows of numbers and in the service protocol.
        attribute: Name in :class:`decima.systems.spark.schedulers.Decision`.
        column: Name in the decision log.
        default: Value where a scheduler does not say.
        extent: Number of values in actions of the Gymnasium environment, a name of
            :class:`decima.systems.spark.gym.padded.Padding`.
        doc: Meaning.
        whole: Whether values are whole numbers; else they are finite numbers of at least 0.
        always: Whether actions of the environment have it even when it was not asked for.
    """

    name: str
    attribute: str
    column: str
    default: int
    extent: str
    doc: str
    whole: bool = True
    always: bool = True


PARTS = (
    Part("stage", "stage", "stage", -1, "slots", "stage id, -1: idle; in logs the index inside its job"),
    Part("limit", "parallelism_limit", "limit_requested", 0, "executors", "executors for its job, or to use"),
    Part(
        "delay_ms",
        "delay_ms",
        "delay_ms",
        0,
        "delays",
        "time in ms for which the stage is withheld; 0: none. In actions the number of steps of that time",
        whole=False,
        always=False,
    ),
    Part(
        "executor_class",
        "executor_class",
        "executor_class",
        -1,
        "class_choices",
        "class of the executors, -1: best fit, the smallest class that the stage fits first",
        always=False,
    ),
)
# Places in the array ``action`` of the cluster state.
STAGE, LIMIT, DELAY, CLASS = 0, 1, 2, 3
OPTION_PARTS = PARTS[1:]
NUM_PARTS = len(PARTS)
DEFAULTS = tuple(part.default for part in PARTS)

# The decision log: the offer, the job, stage and limit, the executors they took. Further parts follow, so that the
# columns before them never move; in files they are left out where no decision has them.
_OFFER = ("time_ms", "source_job", "num_source_exec", "frontier_size", "job")
_COLUMNS = tuple(part.column for part in PARTS)
DECISION_COLUMNS = (*_OFFER, *_COLUMNS[: LIMIT + 1], "executors_used", *_COLUMNS[LIMIT + 1 :])
#: Columns of the decision log that hold -1 for none.
NONE_COLUMNS = ("source_job", "job", "stage", "executor_class")
NUM_COLUMNS = len(DECISION_COLUMNS)
#: Number of columns that files always have.
NUM_FIRST_COLUMNS = len(_OFFER) + LIMIT + 2
JOB_COLUMN, USED_COLUMN = DECISION_COLUMNS.index("job"), DECISION_COLUMNS.index("executors_used")
#: Column of every part.
PART_COLUMNS = tuple(DECISION_COLUMNS.index(column) for column in _COLUMNS)


def parts_of(action: Iterable[float]) -> tuple[float, ...]:
    """Parts of a decision as Python numbers: integers where they are whole.

    Args:
        action: Values in the order of :data:`PARTS`.
    """
    return tuple(int(value) if part.whole else float(value) for part, value in zip(PARTS, action, strict=True))
