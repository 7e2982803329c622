"""The policy network once more: float64 NumPy with plain loops, one decision at a time.

Written from the paper (§5.1 Eq. 1, §5.2) to be read, not to be fast. Both the TensorFlow network and the compiled one
are compared with it.
"""

from dataclasses import dataclass

import numpy as np

from decima.systems.spark.policy.architecture import Architecture

LEAK = 0.2
LIMIT_SCALE = 50.0


@dataclass
class Graph:
    """Unfinished stages of one job."""

    x: np.ndarray  # features of every stage, [stages, features]
    children: list[list[int]]  # of every stage, indices into the same list
    shape: tuple[float, ...] = ()  # what the heads see of the shape of the job


@dataclass
class Answer:
    """What the network says about one decision."""

    log_prob_stage: np.ndarray  # log-probability of every candidate
    log_prob_limit: dict[int, float]  # log-probability by allowed limit; empty if limits are not chosen
    log_prob_delay: np.ndarray  # that of every idle slot for the chosen stage, none first; empty without that head

    def log_prob_class(self, low: int, high: int) -> float:
        """Log-probability of a limit in low..high."""
        inside = [value for limit, value in self.log_prob_limit.items() if low <= limit <= high]
        return float(np.log(np.exp(inside).sum()))


def entropy(log_probs) -> float:
    """Entropy in nats of a distribution given by log-probabilities."""
    return float(-sum(np.exp(value) * value for value in log_probs))


class Oracle:
    """A network with given weights.

    Args:
        architecture: Its shape.
        weights: Flat weights in the order of ``architecture.shapes``.
    """

    def __init__(self, architecture: Architecture, weights: np.ndarray) -> None:
        self.architecture = architecture
        self.arrays = {}
        first = 0
        for name, shape in architecture.shapes:
            size = int(np.prod(shape))
            self.arrays[name] = np.asarray(weights[first : first + size], dtype=np.float64).reshape(shape)
            first += size
        assert first == len(weights)

    def has(self, name: str) -> bool:
        return f"{name}/0/kernel" in self.arrays

    def perceptron(self, name: str, values) -> np.ndarray:
        """One fully connected network on one vector."""
        values = np.asarray(values, dtype=np.float64)
        layers = sum(key.startswith(f"{name}/") and key.endswith("kernel") for key in self.arrays)
        transformation = name not in ("q", "w", "d") and not (name == "input" and self.architecture.linear_input)
        for layer in range(layers):
            values = values @ self.arrays[f"{name}/{layer}/kernel"]
            values = values + self.arrays.get(f"{name}/{layer}/bias", 0.0)
            if layer < layers - 1 or (transformation and self.architecture.rectified_outputs):
                values = np.where(values > 0, values, LEAK * values)
        return values

    def embed_stages(self, graph: Graph) -> np.ndarray:
        """e of every stage, children before parents."""
        e: list = [None] * len(graph.x)

        def visit(stage: int) -> np.ndarray:
            if e[stage] is None:
                h = self.perceptron("input", graph.x[stage])
                if graph.children[stage]:
                    message = sum(self.perceptron("stage_f", visit(child)) for child in graph.children[stage])
                    if self.has("stage_g"):
                        message = self.perceptron("stage_g", message)
                    h = h + message
                e[stage] = h
            return e[stage]

        return np.array([visit(stage) for stage in range(len(graph.x))])

    def answer(self, graphs, candidates, choice: int, limits) -> Answer:
        """Distributions of one decision.

        Args:
            graphs: Graphs of the active jobs.
            candidates: Stages that may be chosen, as (graph, stage), or (graph, stage, numbers of the class) for pairs.
            choice: Index of the chosen candidate: the limit is for its job.
            limits: Allowed limits.
        """
        architecture = self.architecture
        if architecture.graph_embedding:
            e = [self.embed_stages(graph) for graph in graphs]
            y = []
            for graph, own in zip(graphs, e, strict=True):
                total = sum(
                    self.perceptron("job_f", np.concatenate([x, value])) for x, value in zip(graph.x, own, strict=True)
                )
                y.append(self.perceptron("job_g", total) if self.has("job_g") else total)
            z = sum(self.perceptron("cluster_f", value) for value in y)
            if architecture.cluster_mean:
                z = z / len(y)
            if self.has("cluster_g"):
                z = self.perceptron("cluster_g", z)
        scores = []
        for graph, stage, *kind in candidates:
            inputs = [graphs[graph].x[stage]]
            if architecture.graph_embedding:
                inputs += [e[graph][stage], *kind, y[graph], graphs[graph].shape, z]
            else:
                inputs += [*kind, graphs[graph].shape]
            scores.append(self.perceptron("q", np.concatenate(inputs))[0])
        log_prob_stage = log_softmax(scores)
        graph, stage, *_ = candidates[choice]
        x, shape = graphs[graph].x[stage], graphs[graph].shape
        log_prob_delay = np.zeros(0)
        if architecture.delays > 0:
            context = [x, shape]
            if architecture.graph_embedding:
                context = [y[graph], shape, z]
                if architecture.delay_context == "embedding":
                    context.insert(0, e[graph][stage])
            log_prob_delay = log_softmax(self.perceptron("d", np.concatenate(context)))
        if architecture.limit == "none":
            return Answer(log_prob_stage, {}, log_prob_delay)
        if not architecture.graph_embedding:
            context = [x, shape]
        elif architecture.limit_context == "embedding":
            context = [e[graph][stage], y[graph], shape, z]
        else:
            context = [x[:3], y[graph], shape, z]
        limits = list(limits)
        if architecture.limit == "output":
            outputs = self.perceptron("w", np.concatenate(context))
            scores = [outputs[limit - 1] for limit in limits]
        else:
            seen = [np.log(limit) / 4 if architecture.limit_grid else limit / LIMIT_SCALE for limit in limits]
            scores = [self.perceptron("w", np.concatenate([*context, [limit]]))[0] for limit in seen]
        log_prob_limit = dict(zip(limits, log_softmax(scores).tolist(), strict=True))
        return Answer(log_prob_stage, log_prob_limit, log_prob_delay)


def log_softmax(scores) -> np.ndarray:
    """Log-probabilities."""
    scores = np.asarray(scores, dtype=np.float64)
    scores = scores - scores.max()
    return scores - np.log(np.exp(scores).sum())


def record_decision(record, decision: int, children_of_row):
    """One decision of an ``EpisodeRecord`` as the arguments of :meth:`Oracle.answer`: (graphs, candidates, choice).

    Args:
        record: The record.
        decision: Index of the decision.
        children_of_row: Function: profile row -> children as stage indices inside the job.
    """
    pairs = record.pair_instance[record.decision_pairs[decision] : record.decision_pairs[decision + 1]].tolist()
    graphs = []
    for instance in pairs:
        nodes = range(record.instance_first[instance], record.instance_first[instance + 1])
        index = {int(record.node_local[node]): at for at, node in enumerate(nodes)}
        children = [
            [index[int(stage)] for stage in children_of_row(int(record.node_row[node])) if int(stage) in index]
            for node in nodes
        ]
        shape = tuple(np.asarray(record.instance_shape[instance], dtype=np.float64))
        graphs.append(Graph(np.asarray(record.x[nodes.start : nodes.stop], dtype=np.float64), children, shape))
    span = range(record.decision_candidates[decision], record.decision_candidates[decision + 1])
    candidates = []
    for candidate in span:
        instance = int(record.candidate_instance[candidate])
        stage = int(record.candidate_node[candidate] - record.instance_first[instance])
        kind = np.asarray(record.class_inputs[candidate], dtype=np.float64)
        candidates.append((pairs.index(instance), stage, kind))
    return graphs, candidates, int(record.choice[decision] - span.start)
