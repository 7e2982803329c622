"""Lower bounds on the average JCT of every scheduler, offline ones included.

The bounds rest on these facts about a run, and on nothing else:

- A task takes at least the shortest duration that its stage has at any executor count and in any wave: the shortest
  mean where durations are ``"mean"``, the smallest sample where they are ``"sampled"``. The first task of an executor
  in a stage is not of the later ("rest") wave; where a job has one source stage, it is of the fresh wave there.
- The k-th of the tasks that a job runs at one time was launched with at least k executors at the job.
- A stage starts when its parents have finished, a job's first task one moving delay after the arrival at the earliest.
- There are E executors, and an executor runs one task at a time.

The bound holds for every run, in every mode, with these settings. For sampled durations the smallest samples make it
loose; nothing is claimed about expected values.

Four bounds follow, and the largest counts:

- ``path``: every job alone on an otherwise empty cluster, its longest chain of stages.
- ``work``: all jobs on one machine of E-fold speed with preemption, shortest remaining work first (optimal there).
- ``combined``: a job cannot end before the mean time at which the work of any of its stages is done, plus half of
  that stage, plus the longest chain below it. Any mixture of these and of the path bound is a bound on the job. Given
  the mixtures, the least possible sum of mean busy times on the one fast machine, each stage released after the longest
  chain above it, is reached by serving stages by weight over work with preemption (Goemans 1997). So any mixtures give
  a bound on the sum over jobs; the best ones are sought by mirror ascent (the bound is concave in them). ``path`` and,
  for batches, more than ``work`` are special cases.
- ``dual`` (``priced_s`` in answers): what every job costs at least when executor time has a price, see
  :mod:`.dual_bound`. It alone knows that tasks take longer the more of them run at one time, that executors begin a
  stage with a slow task, and that stages of a path share the time of their job.

Source: §7.4 and appendix H call bounds by total work or critical path too loose to say much; the combination is ours.
"""

from dataclasses import dataclass, field

import numpy as np

from decima.core.errors import ConfigError
from decima.systems.spark.optimum.dual_bound import PricedBound
from decima.systems.spark.optimum.pieces import Pieces, shortest_remaining_work
from decima.systems.spark.settings import Settings
from decima.workload.jobs import Workload

# Rounds of mirror ascent along mixtures.
ROUNDS = 300
# Ascent along prices: rounds, and the most jobs for which it is tried without being asked for.
PRICE_ROUNDS = 60
DUAL_JOBS = 100


@dataclass(frozen=True)
class LowerBound:
    """Lower bounds on the average JCT in ms."""

    path_ms: float  # from critical paths alone
    work_ms: float  # from the total work alone
    combined_ms: float  # from both
    dual_ms: float  # from prices of executor time; 0 if none were tried
    job_path_ms: np.ndarray = field(repr=False)  # float64 [jobs], the path bound of each job's JCT
    durations: str  # ``"mean"`` or ``"sampled"``: which shortest durations were used

    @property
    def avg_jct_ms(self) -> float:
        """The largest of the bounds."""
        return max(self.path_ms, self.work_ms, self.combined_ms, self.dual_ms)

    @property
    def avg_jct_s(self) -> float:
        """The largest of the bounds, in seconds."""
        return self.avg_jct_ms / 1000.0

    def as_dict(self) -> dict[str, float]:
        """Bounds in seconds by name, for tables."""
        return {
            "lower_bound_s": self.avg_jct_s,
            "path_s": self.path_ms / 1000.0,
            "work_s": self.work_ms / 1000.0,
            "combined_s": self.combined_ms / 1000.0,
            "priced_s": self.dual_ms / 1000.0,
        }

    def __str__(self) -> str:
        values = self.as_dict()
        return (
            f"average JCT at least {values['lower_bound_s']:.2f} s (path {values['path_s']:.2f} s, work "
            f"{values['work_s']:.2f} s, combined {values['combined_s']:.2f} s, dual prices {values['priced_s']:.2f} s; "
            f"{self.durations} durations)"
        )


def lower_bound(
    workload: Workload, settings: Settings, *, rounds: int = ROUNDS, price_rounds: int | None = None
) -> LowerBound:
    """Compute a lower bound on the average JCT of these jobs on this cluster.

    Args:
        workload: The jobs.
        settings: The cluster; ``durations`` decides between the bound for mean durations and the looser one that holds
            for every draw of sampled ones.
        rounds: Effort spent on the combined bound; any number is valid, more is tighter.
        price_rounds: The same for the bound with prices; 0 for none, which is the default above ``DUAL_JOBS`` jobs.

    Raises:
        ConfigError: Runs would be cut by a time limit, so that the average is not over all jobs.
    """
    if settings.time_limit_applies and settings.time_limit_ms < float("inf"):
        raise ConfigError(f"no bound for runs cut at {settings.time_limit_ms} ms; expected no time limit")
    pieces = Pieces(workload, settings)
    path = pieces.job_path_ms
    jobs = len(path)
    work = shortest_remaining_work(pieces.arrival_ms, pieces.job_work_ms / settings.executors)[0] / jobs
    combined = pieces.best_combination(rounds) / jobs
    if price_rounds is None:
        price_rounds = PRICE_ROUNDS if jobs <= DUAL_JOBS else 0
    dual = PricedBound(pieces).improve(price_rounds) * 1000.0 / jobs if price_rounds else 0.0
    return LowerBound(float(path.mean()), work, combined, dual, path, settings.durations)
