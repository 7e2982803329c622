"""A third algorithm and a validation of its own: what the trainer must serve without knowing it."""

from dataclasses import dataclass

import numpy as np

from decima.learning.algorithms import AlgorithmState, register_algorithm
from decima.learning.configuration import Configuration, number, whole
from decima.learning.trainer import Score


@dataclass(frozen=True)
class EvolutionConfig(Configuration):
    """Fields of the toy."""

    offspring: int = whole(2, "Changed weights per iteration.", 1)
    spread: float = number(0.02, "Standard deviation of a change.", above=True)


@register_algorithm(EvolutionConfig, "evolution")
class Evolution:
    """Steps towards the better half of all changes that were ever tried: no gradient, no batch, a growing memory."""

    columns = ("offspring_jct_s", "remembered")
    headline = "offspring_jct_s"

    def __init__(self, config, agent, seed):
        self.config, self.agent, self.seed = config, agent, seed
        self._weights = agent.learner.weights
        self._blocks = []  # filled once each: changes [offspring, parameters + 1], the last number being the score
        self._trials = 0
        self.at_milestone = False

    @property
    def weights(self):
        return self._weights.copy()

    def begin(self):
        self._weights = self.agent.learner.weights  # an earlier phase may have changed them

    def iterate(self, now):
        rng = np.random.default_rng([self.seed, now.iteration, 7])
        adam = self.agent.learner.state()
        block = np.zeros((self.config.offspring, len(self._weights) + 1), np.float32)
        for row in block:
            row[:-1] = rng.normal(scale=self.config.spread, size=len(self._weights))
            self.agent.learner.restore(adam | {"weights": self._weights + row[:-1]})
            records = self.agent.collect(now.iteration, 1, 2, None)
            row[-1] = self.agent.describe(records)["jct_s"]
        self._blocks.append(block)
        self._trials += len(block)
        known = np.concatenate(self._blocks)
        better = known[known[:, -1] <= np.median(known[:, -1])]
        self._weights = (self._weights + better[:, :-1].mean(axis=0)).astype(np.float32)
        self.at_milestone = self._trials == 2 * self.config.offspring
        return {"offspring_jct_s": float(block[:, -1].min()), "remembered": self._trials}

    def state(self):
        blocks = {f"block_{index}": block for index, block in enumerate(self._blocks)}
        return AlgorithmState({"weights": self._weights} | blocks, {"trials": self._trials})

    def restore(self, state):
        self._weights = state.arrays["weights"]
        self._blocks = [state.arrays[f"block_{index}"] for index in range(len(state.arrays) - 1)]
        self._trials = state.counters["trials"]

    def close(self):
        self.agent.close()


class Climber:
    """Without any agent: the weights walk upwards by a fixed pattern."""

    columns = ("step",)
    headline = "step"
    at_milestone = False

    def __init__(self):
        self._value = np.float32(0.0)
        self.closed = False

    @property
    def weights(self):
        return np.array([self._value])

    def begin(self):
        pass

    def iterate(self, now):
        self._value = np.float32([1.0, 3.0, 2.0, 0.0][now.iteration])
        return {"step": now.iteration}

    def state(self):
        return AlgorithmState({"value": np.array(self._value)})

    def restore(self, state):
        self._value = np.float32(state.arrays["value"])

    def close(self):
        self.closed = True


class Height:
    """A validation in which more is better."""

    columns = ("height",)
    headline = "height"
    lower_is_better = False

    def __init__(self):
        self.references = {"sea": 0.0}

    def measure(self, weights):
        return Score(float(weights[0]), "standing", {"height": float(weights[0])})
