"""Appendix E: how well message passing learns critical paths, with one and with two levels of transformation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas

from decima.policy.quiet import import_tensorflow

if TYPE_CHECKING:
    from decima.evaluation.experiments.store import Context
    from decima.workload.sources import WorkloadSource

# Far from the seeds of the runs, which draw the graphs that are trained on.
TEST_SEED = 1_000_000


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``appendix_e`` (accuracy on unseen graphs by scheme, seed and iteration) and ``appendix_e_graphs``.

    The graphs are random, whatever the workload.
    """
    from tqdm.auto import tqdm

    import_tensorflow()
    from decima.evaluation.critical_path import GRAPHS_PER_ITERATION, SCHEMES, CriticalPathLearner, Graphs
    from decima.training.gradient import use_single_threaded_operations

    use_single_threaded_operations()  # small matrices; results do not depend on the number of cores
    test = Graphs.draw(np.random.default_rng(TEST_SEED), params["test_graphs"])
    rows, parameters = [], {}
    label = context.bar("appendix E")
    with tqdm(total=len(SCHEMES) * params["seeds"], desc=label, unit="run", disable=None if label else True) as bar:
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
