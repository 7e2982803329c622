"""A critic of streams that predicts what every job in the system still costs.

The value of a state is V = -sum over its jobs of (u + e). The perceptron u learns remaining times, which every finished
job shows; e learns what u leaves of the differences between runs of one stream: what a job costs the others and those
to come. Both are small, in NumPy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from decima.core.errors import TrainingError
from decima.learning.agent import Samples, Stretch
from decima.learning.gradient import AdamWeights
from decima.learning.perceptron import Perceptron
from decima.learning.returns import backward_sums

HIDDEN = (32, 32)
BATCH = 2048  # jobs per step of u
LARGEST_NORM = 1.0  # of a gradient


class JobPerceptron(AdamWeights):
    """A number per job from its inputs, multiplied by the first of them.

    Args:
        inputs: Inputs of a job.
        seed: Source of the initial weights.
        scale: The last kernel is smaller by this factor; 0: all outputs begin at 0.
    """

    def __init__(self, inputs: int, seed: Sequence[int], scale: float) -> None:
        rng = np.random.default_rng(seed)
        self._shapes = [shape for _, shape in Perceptron("", (inputs, *HIDDEN, 1)).shapes]
        parts = [
            rng.normal(0.0, shape[0] ** -0.5, shape) if len(shape) == 2 else np.zeros(shape) for shape in self._shapes
        ]
        parts[-2] *= scale
        super().__init__(np.concatenate([part.ravel() for part in parts]))

    def _layers(self, flat: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Kernel and bias of every layer, views of a flat vector."""
        ends = np.cumsum([np.prod(shape) for shape in self._shapes])[:-1]
        parts = [part.reshape(shape) for part, shape in zip(np.split(flat, ends), self._shapes, strict=True)]
        return list(zip(parts[::2], parts[1::2], strict=True))

    def _forward(self, inputs: np.ndarray) -> list[np.ndarray]:
        """Inputs, hidden layers and output before the product with the first input."""
        layers, values = self._layers(self._flat), [inputs]
        for number, (kernel, bias) in enumerate(layers, 1):
            sums = values[-1] @ kernel + bias
            values.append(np.tanh(sums) if number < len(layers) else sums)
        return values

    def values(self, inputs: np.ndarray) -> np.ndarray:
        """Outputs for float32 [M, inputs]; float64 [M]."""
        return (self._forward(inputs)[-1][:, 0] * inputs[:, 0]).astype(np.float64)

    def gradient(self, inputs: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Gradient of sum(slopes x outputs), float32 [weights]."""
        values = self._forward(inputs)
        slope = (slopes * inputs[:, 0]).astype(np.float32)[:, None]
        flat = np.empty_like(self._flat)
        layers, out = self._layers(self._flat), self._layers(flat)
        for number in reversed(range(len(layers))):
            kernel, bias = out[number]
            kernel[:], bias[:] = values[number].T @ slope, slope.sum(axis=0)
            if number:
                slope = (slope @ layers[number][0].T) * (1.0 - values[number] ** 2)
        return flat


@dataclass(frozen=True)
class Runs:
    """Complete runs of one stream with different seeds, sampled at the same times."""

    samples: tuple[Samples, ...]
    targets: tuple[np.ndarray, ...]  # float64 [M] each, discounted remaining times in the unit of values

    @classmethod
    def of(cls, stretches: Sequence[Stretch], step_s: float, horizon_s: float, scale_s: float) -> Runs:
        """Cut the runs to the times that all have.

        Args:
            stretches: The runs, from time 0 until all jobs are done.
            step_s: Time between samples.
            horizon_s: Time constant of the discount.
            scale_s: Unit of values, job-seconds.
        """
        times = min(len(each.samples.area_s) for each in stretches)
        samples, targets = [], []
        for each in stretches:
            known = each.samples
            first, end = known.first[: times + 1], known.first[times]
            cut = Samples(first, known.job[:end], known.inputs[:end], known.area_s[:times])
            when_s = np.repeat(step_s * np.arange(times), np.diff(first))
            left_s = each.finish_s[cut.job] - when_s
            samples.append(cut)
            targets.append(-horizon_s * np.expm1(-left_s / horizon_s) / scale_s)
        return cls(tuple(samples), tuple(targets))

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it by name, for a checkpoint."""
        return {
            f"{run}.{name}": values
            for run, (each, target) in enumerate(zip(self.samples, self.targets, strict=True))
            for name, values in (vars(each) | {"target": target}).items()
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Runs:
        """Inverse of :meth:`arrays`."""
        runs = sorted({int(name.split(".")[0]) for name in arrays})
        names = Samples.__dataclass_fields__
        samples = tuple(Samples(**{name: arrays[f"{run}.{name}"] for name in names}) for run in runs)
        return cls(samples, tuple(arrays[f"{run}.target"] for run in runs))


class JobCritic:
    """Values of states of streams, in units of ``scale_s`` job-seconds.

    Args:
        inputs: Inputs of a job.
        seed: Source of the initial weights.
        horizon_s: Time constant of the discount.
        scale_s: Unit of values.
        corrected: Whether e learns what u leaves.
    """

    def __init__(self, inputs: int, seed: int, horizon_s: float, scale_s: float, corrected: bool = True) -> None:
        self.remaining = JobPerceptron(inputs, [seed, 0], 0.1)
        self.rest = JobPerceptron(inputs, [seed, 1], 0.0)
        self.horizon_s, self.scale_s, self.corrected = horizon_s, scale_s, corrected

    def values(self, samples: Samples) -> np.ndarray:
        """V at each time, float64 [T]."""
        of_jobs = self.remaining.values(samples.inputs)
        if self.corrected:
            of_jobs = of_jobs + self.rest.values(samples.inputs)
        return -samples.sums(of_jobs)

    def surprises(self, samples: Samples, step_s: float) -> np.ndarray:
        """Temporal differences r + gamma V' - V of each step, float64 [T - 1]."""
        values, costs, keep = self.values(samples), self.costs(samples, step_s), np.exp(-step_s / self.horizon_s)
        return -costs + keep * values[1:] - values[:-1]

    def costs(self, samples: Samples, step_s: float) -> np.ndarray:
        """Job-seconds of each step, accrued evenly and discounted to its beginning; float64 [T - 1]."""
        share = step_s / self.horizon_s
        return np.diff(samples.area_s) / self.scale_s * (-np.expm1(-share) / share)

    def explained(self, runs: Runs) -> float:
        """Share of the variance of remaining times that u predicts."""
        targets = np.concatenate(runs.targets)
        predicted = np.concatenate([self.remaining.values(each.inputs) for each in runs.samples])
        spread = float(np.var(targets)) if len(targets) else 0.0
        return 1.0 - float(np.mean((targets - predicted) ** 2)) / spread if spread > 0.0 else 0.0

    def fit(
        self, memory: Sequence[Runs], rate: float, passes: int, step_s: float, trace_s: float, rng: np.random.Generator
    ) -> float:
        """Learn from complete runs.

        Args:
            memory: The runs.
            rate: Adam's learning rate.
            passes: Passes over them.
            step_s: Time between samples.
            trace_s: Time constant of the traces of the returns that e learns from.
            rng: Order.

        Returns:
            Mean squared error of u.

        Raises:
            TrainingError: It is not finite.
        """
        errors = [self._fit_remaining(memory[index], rate, rng) for index in self._order(memory, passes, rng)]
        if self.corrected:
            for index in self._order(memory, passes, rng):
                self._fit_rest(memory[index], rate, step_s, trace_s)
        return float(np.mean(errors))

    @staticmethod
    def _order(memory: Sequence[Runs], passes: int, rng: np.random.Generator) -> list[int]:
        return [int(index) for _ in range(passes) for index in rng.permutation(len(memory))]

    def _fit_remaining(self, runs: Runs, rate: float, rng: np.random.Generator) -> float:
        inputs = np.concatenate([each.inputs for each in runs.samples])
        targets = np.concatenate(runs.targets)
        order, errors = rng.permutation(len(targets)), [0.0]
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            difference = self.remaining.values(inputs[part]) - targets[part]
            errors.append(float(np.mean(difference**2)))
            if not np.isfinite(errors[-1]):
                raise TrainingError("the critic's error is not finite: it diverged; try a smaller critic_lr")
            slopes = 2.0 * difference / len(part)
            self.remaining.apply(self.remaining.gradient(inputs[part], slopes), rate, LARGEST_NORM)
        return float(np.mean(errors[1:] or errors))

    def _fit_rest(self, runs: Runs, rate: float, step_s: float, trace_s: float) -> None:
        """One step of e towards differences between bootstrapped returns of the runs."""
        values = np.stack([self.values(each) for each in runs.samples])
        costs = np.stack([self.costs(each, step_s) for each in runs.samples])
        if len(values) < 2 or values.shape[1] < 2:
            return
        keep, trace = np.exp(-step_s / self.horizon_s), np.exp(-step_s / trace_s)
        ahead = -costs + keep * (1.0 - trace) * values[:, 1:]
        ahead[:, -1] += keep * trace * values[:, -1]
        factors = np.full(ahead.shape[1], keep * trace)
        returns = np.stack([backward_sums(each, factors) for each in ahead])
        wrong = values[:, :-1] - returns
        wrong = wrong - wrong.mean(axis=0)
        slopes = np.append(-2.0 * wrong / wrong.size, np.zeros((len(wrong), 1)), axis=1)
        inputs = np.concatenate([each.inputs for each in runs.samples])
        of_jobs = [np.repeat(slope, np.diff(each.first)) for slope, each in zip(slopes, runs.samples, strict=True)]
        self.rest.apply(self.rest.gradient(inputs, np.concatenate(of_jobs)), rate, LARGEST_NORM)

    def state(self) -> dict[str, np.ndarray]:
        """Weights and Adam's state of both."""
        parts = {"remaining": self.remaining, "rest": self.rest}
        return {f"{part}.{name}": value for part, each in parts.items() for name, value in each.state().items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`state` returned."""
        for part in ("remaining", "rest"):
            known = {name.split(".", 1)[1]: value for name, value in arrays.items() if name.startswith(f"{part}.")}
            getattr(self, part).restore(known)
