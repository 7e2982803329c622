"""Where the jobs of an experiment come from: the authors' TPC-H profiles or own ones, behind the same calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decima.exceptions import ConfigError
from decima.workload import embedded, measured, tpch
from decima.workload.jobs import Workload
from decima.workload.profile import JobProfile

_MODULES = {"tpch": tpch, "embedded": embedded, "measured": measured}
# Test sequences have small seeds; whatever is tuned or selected sees only sequences from here on.
TRAINING_SEED = 100_000


@dataclass(frozen=True)
class Source:
    """Jobs for the experiments.

    Attributes:
        name: ``"tpch"``, ``"embedded"`` (own profiles, extrapolated to the paper's sizes and cluster) or ``"measured"``
            (own profiles as measured, on up to four executors).
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in _MODULES:
            raise ConfigError(f"workload must be 'tpch', 'embedded' or 'measured', got {self.name!r}")

    @property
    def label(self) -> str:
        """For titles."""
        return _MODULES[self.name].LABEL

    def batches(self, seeds: Sequence[int], jobs: int = 20, sizes: str = "paper") -> list[Workload]:
        """One batch per seed."""
        make = getattr(_MODULES[self.name], f"{self.name}_batch")
        return [make(jobs, seed, sizes) for seed in seeds]

    def streams(
        self, seeds: Sequence[int], arrivals: int, interarrival_s: float, sizes: str = "paper"
    ) -> list[Workload]:
        """One job at the start and a Poisson stream, one per seed."""
        make = getattr(_MODULES[self.name], f"{self.name}_poisson")
        return [make(arrivals, interarrival_s, seed, sizes) for seed in seeds]

    def contrasting_profiles(self) -> list[JobProfile]:
        """Three jobs that gain differently from parallelism: Q9 and Q2 at 100 GB, Q9 at 2 GB (§2.2, Figure 2)."""
        return self._profiles((100, 9), (100, 2), (2, 9))

    def illustrated_profiles(self) -> list[JobProfile]:
        """Six DAGs to draw (Figure 1)."""
        return self._profiles(*((100, query) for query in (2, 5, 8, 9, 18, 21)))

    def small_profiles(self) -> list[JobProfile]:
        """Three small jobs whose DAGs have joins, to look into a policy (Figures 5 and 6)."""
        return self._profiles((10, 17), (5, 3), (20, 22))

    def _profiles(self, *wanted: tuple[int, int]) -> list[JobProfile]:
        """Of pairs of GB and query; the largest measured size stands for 100 GB, the smallest for all others."""
        if self.name == "tpch":
            return [tpch.tpch_profile(f"{size}g", query) for size, query in wanted]
        if self.name == "embedded":
            return [embedded.embedded_profile(f"{size}g", query) for size, query in wanted]
        ends = [f"{scale:g}g" for scale in (measured.scales()[0], measured.scales()[-1])]
        return [measured.measured_profiles(ends[size >= 100], [query])[0] for size, query in wanted]
