"""Budget of training and progress through it."""

from __future__ import annotations

from dataclasses import dataclass

from decima.core.configuration import Configuration, number, whole


@dataclass(frozen=True)
class Progress:
    """Progress of training, or of one phase of it."""

    iteration: int  # iterations of the whole run before this one; chance is a function of it and of the run's seed
    since: int  # iterations since the phase began
    share: float  # used part of the budget that was left when the phase began, 0 to 1

    def after(self, first: int, used_before: float) -> Progress:
        """Progress of a phase that began at iteration ``first`` after ``used_before`` of the budget."""
        left = max(1.0 - used_before, 1e-9)
        return Progress(self.iteration, self.iteration - first, min(1.0, (self.share - used_before) / left))


@dataclass(frozen=True)
class Budget(Configuration):
    """Budget: when training stops, and how often it validates and writes checkpoints."""

    iterations: int | None = whole(
        None, "Stop after so many iterations, imitation included; none: no such limit.", 1, none=True
    )
    wall_seconds: float | None = number(None, "Stop after so many seconds.", above=True, none=True)
    cpu_seconds: float | None = number(None, "Stop after so many CPU seconds.", above=True, none=True)
    validate_every: int = whole(25, "Iterations between validations.", 1)
    validation_sequences: int = whole(20, "Sequences of a validation; never used for training or tests.", 1)
    validation_seeds: int = whole(1, "Runs of the sampled policy per sequence; 0: only the greedy one.", 0)
    checkpoint_every: int = whole(25, "Iterations between checkpoints.", 1)

    # A resumed run may have other limits than the one it continues.
    LIMITS = ("iterations", "wall_seconds", "cpu_seconds")

    @property
    def has_stop(self) -> bool:
        """Whether training would end by itself."""
        return any(getattr(self, name) is not None for name in self.LIMITS)

    def used(self, iteration: int, wall_s: float, cpu_s: float) -> float:
        """Used share of the budget, 0 to 1, by iterations if limited, else by time."""
        if self.iterations is not None:
            return min(1.0, iteration / self.iterations)
        shares = [used / limit for used, limit in ((wall_s, self.wall_seconds), (cpu_s, self.cpu_seconds)) if limit]
        return min(1.0, max(shares, default=0.0))

    def is_over(self, iteration: int, wall_s: float, cpu_s: float) -> bool:
        """Whether a limit is reached."""
        limits = ((iteration, self.iterations), (wall_s, self.wall_seconds), (cpu_s, self.cpu_seconds))
        return any(limit is not None and used >= limit for used, limit in limits)
