r"""Identity of applications, and the report on their event logs.

logs = read_event_logs(["/var/spark-events"])
print("\n".join(logs.report.lines()))
logs.report.completeness.least  # 0.97
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from decima.core.errors import EventLogError

if TYPE_CHECKING:
    import pandas

PARTS = ("tasks", "stages", "queries")
USED = "used"
#: Least completeness that an answer may rest on.
HALF = 0.5


@dataclass(frozen=True, order=True)
class ApplicationKey:
    """Identity of one run of an application; as a text, Spark's name of its log."""

    app_id: str  # Spark's id, unique in the cluster; the name of the log where it has none
    attempt: str = ""  # Spark's attempt id; empty where the cluster manager knows no attempts
    start_ms: int = 0  # start of the application; where the log does not have it, its first event

    def __str__(self) -> str:
        return f"{self.app_id}_{self.attempt}" if self.attempt else self.app_id


@dataclass(frozen=True)
class Completeness:
    """Numbers used and numbers of all, for each of :data:`PARTS`."""

    counts: dict[str, tuple[int, int]] = field(default_factory=lambda: dict.fromkeys(PARTS, (0, 0)))

    def share(self, part: str) -> float:
        """Share of a part that could be used, 0 to 1; 0 without any."""
        used, all_ = self.counts[part]
        return used / all_ if all_ else 0.0

    @property
    def least(self) -> float:
        """The smallest of the shares."""
        return min(map(self.share, PARTS))

    def __str__(self) -> str:
        # Rounded down: 100 % means that nothing is missing.
        return ", ".join(f"{int(100 * self.share(part))} % of {part}" for part in PARTS)


@dataclass(frozen=True)
class Notice:
    """One remark on the logs."""

    item: str  # what it counts: `line`, `task`, `query`; `note ...` for remarks that add up to nothing
    reason: str  # words for `count` of the items
    count: int = 1
    detail: str = ""  # which, as far as few can be named
    application: str = ""  # text of its key; empty where it concerns all logs


@dataclass(frozen=True)
class LogReport:
    """Report on event logs: what was read, what was not, and why.

    The counts of `line` add up to the lines of the logs, those of `task` to their events of ended tasks, those of
    `query` to the queries.
    """

    notices: tuple[Notice, ...] = ()
    completeness: Completeness = field(default_factory=Completeness)

    @property
    def table(self) -> pandas.DataFrame:
        """Columns `application`, `item`, `reason`, `count`, `detail`."""
        import pandas

        columns = ["application", "item", "reason", "count", "detail"]
        rows = [[getattr(notice, column) for column in columns] for notice in self.notices]
        return pandas.DataFrame(rows, columns=columns)

    def lines(self) -> list[str]:
        """Lines for a terminal: counts added up over all logs, and the completeness."""
        total: Counter = Counter()
        for notice in self.notices:
            total[notice.item, notice.reason] += notice.count
        lines = [f"{number:>12,}  {item.removeprefix('note ')}: {reason}" for (item, reason), number in total.items()]
        return [*lines, f"completeness: {self.completeness} could be used"]

    def document(self) -> dict[str, Any]:
        """Content for JSON."""
        shares = {part: self.completeness.share(part) for part in PARTS}
        return {
            "completeness": shares | {"least": self.completeness.least},
            "counts": {part: list(self.completeness.counts[part]) for part in PARTS},
            "notices": self.table.to_dict("records"),
        }

    def with_notices(self, notices: Iterable[Notice]) -> LogReport:
        """Copy with more notices."""
        return replace(self, notices=(*self.notices, *notices))

    @property
    def why(self) -> str:
        """Main reasons for what was not used, to end a message."""
        lost: Counter = Counter()
        for notice in self.notices:
            if notice.item in ("query", "task", "note task", "note file") and notice.reason != USED:
                lost[notice.item.removeprefix("note "), notice.reason] += notice.count
        words = "; ".join(f"{number:,} {item}: {why}" for (item, why), number in lost.most_common(4))
        return f" ({words})" if lost else ""

    def check(self, anyway: bool = False) -> None:
        """Refuse logs of which less than :data:`HALF` can be used.

        Raises:
            EventLogError: That is so; the sentence names the missing part.
        """
        if self.completeness.least < HALF and not anyway:
            raise EventLogError(
                f"only {self.completeness} of the event logs can be used{self.why}; "
                "--anyway (in Python: anyway=True) uses it all the same"
            )


def join_reports(reports: Sequence[LogReport], notices: Iterable[Notice] = ()) -> LogReport:
    """One report on several logs; numbers of tasks, stages and queries are added."""
    counts = {
        part: (
            sum(each.completeness.counts[part][0] for each in reports),
            sum(each.completeness.counts[part][1] for each in reports),
        )
        for part in PARTS
    }
    return LogReport((*(each for report in reports for each in report.notices), *notices), Completeness(counts))
