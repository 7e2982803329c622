"""Where the jobs of an experiment come from: TPC-H or the embedded workload, behind the same calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decima.exceptions import ConfigError
from decima.workload import synthetic, tpch
from decima.workload.jobs import Workload
from decima.workload.profile import JobProfile

# Test sequences have small seeds; whatever is tuned or selected sees only sequences from here on.
TRAINING_SEED = 100_000


@dataclass(frozen=True)
class Source:
    """Jobs for the experiments.

    Attributes:
        name: ``"tpch"`` or ``"embedded"``.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in ("tpch", "embedded"):
            raise ConfigError(f"workload must be 'tpch' or 'embedded', got {self.name!r}")

    @property
    def label(self) -> str:
        """For titles."""
        return tpch.LABEL if self.name == "tpch" else synthetic.LABEL

    def batches(self, seeds: Sequence[int], jobs: int = 20, sizes: str = "paper") -> list[Workload]:
        """One batch per seed."""
        make = tpch.tpch_batch if self.name == "tpch" else synthetic.synthetic_batch
        return [make(jobs, seed, sizes) for seed in seeds]

    def streams(
        self, seeds: Sequence[int], arrivals: int, interarrival_s: float, sizes: str = "paper"
    ) -> list[Workload]:
        """One job at the start and a Poisson stream, one per seed."""
        make = tpch.tpch_poisson if self.name == "tpch" else synthetic.synthetic_poisson
        return [make(arrivals, interarrival_s, seed, sizes) for seed in seeds]

    def contrasting_profiles(self) -> list[JobProfile]:
        """Three jobs that gain differently from parallelism: Q9 and Q2 at 100 GB, Q9 at 2 GB (§2.2, Figure 2).

        The embedded workload has no queries: the heaviest job, the large job with the least parallelism, a small one.
        """
        if self.name == "tpch":
            return [tpch.tpch_profile("100g", 9), tpch.tpch_profile("100g", 2), tpch.tpch_profile("2g", 9)]
        profiles = sorted(synthetic.embedded_profiles("paper"), key=lambda profile: profile.work_ms)
        large = profiles[-len(profiles) // 6 :]
        narrow = min(large, key=lambda profile: profile.work_ms / profile.critical_path_ms)
        return [profiles[-1], narrow, profiles[len(profiles) // 6]]

    def illustrated_profiles(self) -> list[JobProfile]:
        """Six DAGs to draw (Figure 1)."""
        if self.name == "tpch":
            return [tpch.tpch_profile("100g", query) for query in (2, 5, 8, 9, 18, 21)]
        profiles = sorted(synthetic.embedded_profiles("paper"), key=lambda profile: len(profile.stages))
        return [profiles[len(profiles) * part // 6 - 1] for part in range(1, 7)]

    def small_profiles(self) -> list[JobProfile]:
        """Three small jobs whose DAGs have joins, to look into a policy (Figures 5 and 6)."""
        if self.name == "tpch":
            return [tpch.tpch_profile("10g", 17), tpch.tpch_profile("5g", 3), tpch.tpch_profile("20g", 22)]
        profiles = synthetic.embedded_profiles("paper")
        joined = [each for each in profiles if max(len(stage.parents) for stage in each.stages) > 1]
        return [each for each in sorted(joined, key=lambda profile: len(profile.stages)) if len(each.stages) > 5][:3]
