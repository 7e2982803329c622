"""How long a task takes: plain-Python counterpart of the compiled duration tables.

Random numbers come from raw 64-bit outputs of the generator, so that another implementation can be compared
draw by draw: at most one uniform for the profiled level, then exactly one bounded integer for the entry of
the list.
"""

import math

FRESH, FIRST, REST = 0, 1, 2

# executor counts between which the released simulator interpolates; 2 is profiled but not among them
DATA_POINTS = (5, 10, 20, 40, 50, 60, 80, 100)


def uniform(rng):
    """Uniform double in [0, 1) from one raw output."""
    return (int(rng.bit_generator.random_raw()) >> 11) * 2.0**-53


def bounded_integer(rng, n):
    """Integer in 0..n-1 from one raw output."""
    return ((int(rng.bit_generator.random_raw()) >> 32) * n) >> 32


def neighbours(points, n):
    """The two of the ascending `points` around `n`; the same one twice at or beyond a point."""
    if n <= points[0]:
        return points[0], points[0]
    if n >= points[-1]:
        return points[-1], points[-1]
    right = next(i for i, point in enumerate(points) if point >= n)
    return (points[right], points[right]) if points[right] == n else (points[right - 1], points[right])


class DurationModel:
    """Duration of a task from the profile of its stage.

    Args:
        settings: What `decima.systems.spark.settings.Settings` has; of `level_rule`, "inverted" takes the nearer
            data point less often, as released, and "interpolate" the nearer level of the stage itself more often.
        rng: numpy Generator for sampled durations.
    """

    def __init__(self, settings, rng=None):
        self.settings = settings
        self.rng = rng
        self.means = {}  # id of a list -> (the list, its mean)

    def duration_ms(self, stage, wave, attached):
        """Duration of a task of `stage`, launched in `wave` while `attached` executors work for the job."""
        levels = stage.levels if self.settings.inflation else stage.levels[:1]
        left, right, p_right = self.levels(levels, attached)
        if self.settings.durations == "mean":
            if left == right:
                return self.mean_ms(stage, wave, left)
            left_ms, right_ms = self.mean_ms(stage, wave, left), self.mean_ms(stage, wave, right)
            return (1.0 - p_right) * left_ms + p_right * right_ms
        level = right if left != right and uniform(self.rng) < p_right else left
        durations, extra_ms = self.recorded(stage, wave, level)
        return float(durations[bounded_integer(self.rng, len(durations))]) + extra_ms

    def levels(self, levels, n):
        """Two candidate levels (equal if there is one) and the probability of the second."""
        if self.settings.level_rule == "interpolate":
            left, right = neighbours(levels, n)
            return left, right, (n - left) / (right - left) if left != right else 0.0
        left, right = neighbours(DATA_POINTS, n)
        p_right = 1.0 - (n - left) / (right - left) if left != right else 0.0
        left, right = (point if point in levels else levels[-1] for point in (left, right))
        if self.settings.level_rule == "left":
            return left, left, 0.0
        if self.settings.level_rule == "right":
            return right, right, 0.0
        return left, right, p_right

    def recorded(self, stage, wave, level):
        """The list to draw from and what is added to its entries; other waves stand in for an empty one."""
        i = stage.levels.index(level)
        fresh, first, rest = stage.fresh[i], stage.first[i], stage.rest[i]
        if wave == FRESH and self.settings.startup:
            if len(fresh):
                return fresh, 0.0
            return first if len(first) else rest, self.settings.warmup_delay_ms
        if len(rest) and (wave == REST or not self.settings.first_wave):
            return rest, 0.0
        return next(durations for durations in (first, fresh, rest) if len(durations)), 0.0

    def mean_ms(self, stage, wave, level):
        durations, extra_ms = self.recorded(stage, wave, level)
        if id(durations) not in self.means:
            self.means[id(durations)] = durations, math.fsum(durations) / len(durations)
        return self.means[id(durations)][1] + extra_ms
