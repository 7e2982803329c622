"""Appendix E: can the message passing express a critical path? Supervised learning on random DAGs.

Source: §5.1 footnote 5, appendix E. The network is the part of :class:`.DecimaNetwork` that makes
embeddings of stages, and a readout that turns an embedding into the critical path value of its stage.

Differs: the paper names neither the random graphs, nor the loss, nor the readout. Here graphs
have ten stages with uniform work below 1, and a quarter of the pairs have an edge. The loss is the mean squared
error over all stages, and the readout is linear.
With a perceptron as readout the scheme without g also learns the maximum, which is shown next to the paper's two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas

from decima import plotting
from decima.core.progress import progress_bar
from decima.learning.perceptron import Perceptron
from decima.learning.quiet import import_tensorflow, use_single_threaded_operations
from decima.plotting.words import count
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.batch import TENSORS
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables, distinct
from experiments.experiment import Context, Experiment
from experiments.rooms import POLICY_ROOMS

STAGES = 10
EDGE_PROBABILITY = 0.25
GRAPHS_PER_ITERATION = 128
LEARNING_RATE = 1e-2
# Name -> (two levels of transformation, hidden widths of the readout).
SCHEMES: dict[str, tuple[bool, tuple[int, ...]]] = {
    "two_level": (True, ()),
    "one_level": (False, ()),
    "one_level_perceptron": (False, (32, 16)),
}
_INPUTS = ("x", "level_sizes", "edge_source", "edge_target", "edge_level_sizes")
# Far from the seeds of the runs, which draw the graphs that are trained on.
TEST_SEED = 1_000_000


@dataclass(frozen=True, eq=False)
class Graphs:
    """Random DAGs of one size."""

    child: np.ndarray  # bool [G, n, n], ``child[g, u, v]``: v is a child of u; only where u < v
    work: np.ndarray  # float64 [G, n], work of the stages

    @classmethod
    def draw(cls, rng: np.random.Generator, count: int, stages: int = STAGES) -> Graphs:
        """Random graphs: each pair of stages has an edge with the same probability."""
        child = np.triu(rng.random((count, stages, stages)) < EDGE_PROBABILITY, 1)
        return cls(child, rng.random((count, stages)))

    @cached_property
    def critical_path(self) -> np.ndarray:
        """Heaviest path's work from each stage, float64 [G, n]: cp(v) = max cp(children) + work(v)."""
        path = self.work.copy()
        for stage in range(path.shape[1] - 2, -1, -1):
            path[:, stage] += np.where(self.child[:, stage], path, 0.0).max(axis=1)
        return path

    @cached_property
    def level(self) -> np.ndarray:
        """Int64 [G, n], edges on the longest path to a stage without children."""
        level = np.zeros(self.work.shape, dtype=np.int64)
        for stage in range(level.shape[1] - 2, -1, -1):
            level[:, stage] = np.where(self.child[:, stage], level + 1, 0).max(axis=1)
        return level

    @cached_property
    def order(self) -> np.ndarray:
        """Int64 [G n], flat index of every node of :meth:`tensors`, by level."""
        return np.argsort(self.level.reshape(-1), kind="stable")

    def tensors(self, num_features: int) -> dict[str, np.ndarray]:
        """Inputs of ``DecimaNetwork.embed_stages``; the first feature is the work, the others are 0."""
        stages = self.work.shape[1]
        level = self.level.reshape(-1)
        position = np.empty(level.size, dtype=np.int64)
        position[self.order] = np.arange(level.size)
        sizes = np.bincount(level, minlength=stages)
        first = np.cumsum(sizes) - sizes
        graph, u, v = np.nonzero(self.child)
        parent, child = graph * stages + u, graph * stages + v
        by_parent = np.argsort(position[parent], kind="stable")
        parent, child = parent[by_parent], child[by_parent]
        x = np.zeros((level.size, num_features))
        x[:, 0] = self.work.reshape(-1)[self.order]
        values = {
            "x": x,
            "level_sizes": sizes,
            "edge_source": position[child],
            "edge_target": position[parent] - first[level[parent]],
            "edge_level_sizes": np.bincount(level[parent], minlength=stages),
        }
        return {name: np.asarray(value, dtype=TENSORS[name][0]) for name, value in values.items()}

    def accuracy(self, predicted: np.ndarray) -> float:
        """Share of graphs whose stage with the largest prediction, [G, n], is the true one."""
        return float((predicted.argmax(axis=1) == self.critical_path.argmax(axis=1)).mean())

    @property
    def guess_accuracy(self) -> float:
        """Expected accuracy of a guess among stages without parents, one of which is true."""
        return float((1.0 / (~self.child.any(axis=1)).sum(axis=1)).mean())


class CriticalPathLearner:
    """One scheme of message passing, trained from new weights as often as wanted, traced once.

    Args:
        scheme: One of :data:`SCHEMES`.
        stages: Stages of every graph.
    """

    def __init__(self, scheme: str, stages: int = STAGES) -> None:
        import_tensorflow()
        import tensorflow as tf

        from decima.learning.layers import PerceptronLayer
        from decima.systems.spark.policy.network import DecimaNetwork

        two_level, hidden = SCHEMES[scheme]
        self.architecture = Architecture.paper(two_level=two_level)
        self.stages = stages
        self.network = DecimaNetwork(self.architecture, num_levels=stages)
        self.readout = PerceptronLayer(Perceptron("readout", (self.architecture.embedding, *hidden, 1)))
        embedding = [layer for layer in self.network.perceptrons if layer.name in ("input", "stage_f", "stage_g")]
        self._variables = [variable for layer in (*embedding, self.readout) for variable in layer.trainable_variables]
        self._optimizer = tf.keras.optimizers.Adam(LEARNING_RATE)
        self._optimizer.build(self._variables)
        sizes = {"F": self.architecture.num_features, "L": stages}
        inputs = {
            name: tf.TensorSpec([sizes.get(size) for size in TENSORS[name][1]], tf.as_dtype(TENSORS[name][0]))
            for name in _INPUTS
        }
        self._values = tf.function(self._value, input_signature=[inputs])
        self._step = tf.function(self._descend, input_signature=[inputs, tf.TensorSpec([None]), tf.TensorSpec([])])

    @property
    def num_parameters(self) -> int:
        """Number of trained weights."""
        return sum(int(np.prod(variable.shape)) for variable in self._variables)

    def train(self, seed: int, iterations: int, every: int, test: Graphs) -> Iterator[tuple[int, float, float]]:
        """Train from new weights, on new graphs per iteration, with a cosine learning rate.

        Args:
            seed: Of weights and graphs.
            iterations: Steps of Adam.
            every: Iterations between two tests.
            test: Graphs that are not trained on.

        Yields:
            Iterations done, accuracy on ``test``, mean squared error there.
        """
        rng = np.random.default_rng(seed)
        self._restart(rng)
        for iteration in range(iterations + 1):
            if iteration % every == 0:
                predicted = self.predict(test)
                yield iteration, test.accuracy(predicted), float(((predicted - test.critical_path) ** 2).mean())
            if iteration < iterations:
                graphs = Graphs.draw(rng, GRAPHS_PER_ITERATION, self.stages)
                target = graphs.critical_path.reshape(-1)[graphs.order].astype(np.float32)
                rate = LEARNING_RATE * 0.5 * (1.0 + np.cos(np.pi * iteration / iterations))
                self._step(graphs.tensors(self.architecture.num_features), target, np.float32(rate))

    def predict(self, graphs: Graphs) -> np.ndarray:
        """Float64 [G, n], the network's critical path values."""
        flat = np.empty(graphs.work.size)
        flat[graphs.order] = self._values(graphs.tensors(self.architecture.num_features)).numpy()
        return flat.reshape(graphs.work.shape)

    def _restart(self, rng: np.random.Generator) -> None:
        for variable in self._optimizer.variables:
            variable.assign(np.zeros(variable.shape, variable.dtype))
        for variable in self._variables:
            bound = np.sqrt(6.0 / sum(variable.shape)) if len(variable.shape) == 2 else 0.0
            variable.assign(rng.uniform(-bound, bound, size=variable.shape).astype(np.float32))

    def _value(self, tensors):
        """Critical path values [N] in the order of the nodes; traced once."""
        return self.readout(self.network.embed_stages(tensors))[:, 0]

    def _descend(self, tensors, target, learning_rate):
        """One step of Adam; traced once."""
        import tensorflow as tf

        variables = [variable.value for variable in self._variables]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            loss = tf.reduce_mean((self._value(tensors) - target) ** 2)
        self._optimizer.learning_rate.assign(learning_rate)
        self._optimizer.apply(tape.gradient(loss, variables), self._variables)


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``appendix_e`` (accuracy on unseen graphs by scheme, seed and iteration) and ``appendix_e_graphs``.

    The graphs are random, whatever the workload.
    """
    use_single_threaded_operations()  # small matrices; results do not depend on the number of cores
    test = Graphs.draw(np.random.default_rng(TEST_SEED), params["test_graphs"])
    rows, parameters = [], {}
    with progress_bar(context.bar("appendix E"), len(SCHEMES) * params["seeds"], "run") as bar:
        for scheme in SCHEMES:
            learner = CriticalPathLearner(scheme)
            parameters[scheme] = learner.num_parameters
            for seed in range(params["seeds"]):
                for iteration, accuracy, error in learner.train(seed, params["iterations"], params["every"], test):
                    rows.append((scheme, seed, iteration, accuracy, error))
                bar.update()
    graphs = {
        "test_graphs": len(test.work),
        "graphs_per_iteration": GRAPHS_PER_ITERATION,
        "stages": test.work.shape[1],
        "levels_mean": 1.0 + test.level.max(axis=1).mean(),
        "guess_accuracy": test.guess_accuracy,
    } | {f"parameters_{scheme}": count for scheme, count in parameters.items()}
    columns = ["scheme", "seed", "iteration", "accuracy", "squared_error"]
    return {"appendix_e": pandas.DataFrame(rows, columns=columns), "appendix_e_graphs": pandas.DataFrame([graphs])}


def fig19_expressiveness(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 19."""
    table, graphs = tables["appendix_e"], tables["appendix_e_graphs"].iloc[0]
    figure = plotting.curves.expressiveness(table, float(graphs["guess_accuracy"])).figure
    caption = (
        f"Share of {count(int(graphs['test_graphs']), 'unseen DAG')} of {graphs['stages']:g} stages in which the stage "
        f"with the longest critical path is found; {graphs['graphs_per_iteration']:g} new DAGs per iteration. "
        f"Mean over {distinct(table, 'seed', 'seed')}, band: lowest to highest."
    )
    return plotting.style.entitle(figure, "Figure 19: learning critical paths", caption, "random DAGs")


EXPERIMENT = Experiment(
    "appendix_e",
    "appendix E, Figure 19",
    compute,
    rooms=(*POLICY_ROOMS, "learning/layers.py", "learning/quiet.py"),
    figures=(fig19_expressiveness,),
    may_differ={"appendix_e": ("accuracy", "squared_error")},
    tiny={"seeds": 1, "iterations": 2, "every": 1, "test_graphs": 5},
)
