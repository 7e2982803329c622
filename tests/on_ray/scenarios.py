"""What has to hold on a Ray cluster of three nodes of one core each; every function with a docstring is a test."""

import contextlib
import threading
import warnings

import pytest

from decima.core.errors import TrainingError, WorkerError
from decima.evaluation import workers as module
from decima.evaluation.workers import make_workers
from decima.learning.rollout import Rollouts
from decima.learning.trainer import Checkpoint
from decima.workload import tpch_available
from tests.on_ray.work import Mortal, Slow, divide, fall, nodes_seen
from tests.unit.commands.calls import run
from tests.unit.evaluation import test_workers
from tests.unit.learning.small import NETWORK, TASK, quick_recipe, same_arrays, without_times

CORES = 3


def on_ray(function, workers=None):
    return contextlib.closing(make_workers(function, "ray", workers))


def until_all_have_come(workers):
    while len(workers._free) < CORES:
        workers.map([1] * CORES)


def results_come_in_order_and_exceptions_in_the_caller():
    """As with threads and processes."""
    test_workers.check_results("ray")


def more_workers_than_cores():
    """Eight workers on three cores: those that have a core do all the work."""
    with on_ray(divide, 8) as workers:
        assert workers.map([1, 2, 3, 4, 5, 6] * 3) == [60, 30, 20, 15, 12, 10] * 3
        assert 1 <= len(workers._free) <= CORES


def cores_that_others_hold():
    """Without a free core there is one sentence; when cores are free again, work is done."""
    with on_ray(divide) as others, pytest.MonkeyPatch.context() as patch:
        until_all_have_come(others)
        patch.setattr(module, "RAY_PATIENCE_S", 2.0)
        with on_ray(divide, 2) as workers:
            with pytest.raises(WorkerError, match="no Ray worker came within 2 s: all 3 cores of the cluster are busy"):
                workers.map([1, 2])
            patch.undo()
            others.close()
            assert workers.map([1, 2]) == [60, 30]


def work_that_kills_its_worker():
    """An item that kills every worker it meets is one error, after three of them; others come."""
    with on_ray(fall, 2) as workers:
        message = "3 Ray workers died over the same work, perhaps for want of memory"
        with pytest.warns(RuntimeWarning, match="a Ray worker died, "), pytest.raises(WorkerError, match=message):
            workers.map([0, 0, 1, 0, 0, 0])
        assert workers.map([0, 2, 3]) == [0, 2, 3]


def a_node_is_killed(nodes, folder):
    """Finished work is kept, that of the dead node is done again; one warning says so."""
    calls = 24

    def advance(value):
        if value == 9:
            threading.Timer(0.25, nodes.kill).start()

    with on_ray(Slow(folder)) as workers:
        until_all_have_come(workers)
        (folder / "calls").unlink()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert workers.map(range(calls), advance) == [item * item for item in range(calls)]
        assert len([each for each in said if "a Ray worker died" in str(each.message)]) == 1
    assert calls <= len((folder / "calls").read_text().split()) <= calls + 2
    nodes.add()


def pools_and_searches_give_the_same():
    """Scores of compiled schedulers and of one that cannot be pickled, and a search, as in threads."""
    for work in (test_workers.pool, test_workers.search):
        assert work(workers=2, backend="ray") == work(workers=1, backend="threads")


def another_cluster_runs_on_this_machine():
    """Without RAY_ADDRESS there is a new cluster, though Ray knows of one; an address without a cluster is refused."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS")
        for attempt in range(3):
            with contextlib.suppress(WorkerError) if attempt < 2 else contextlib.nullcontext():
                with on_ray(nodes_seen, 1) as workers:
                    assert workers.map([0]) == [1]
                break
        patch.setenv("RAY_ADDRESS", "nowhere")
        with (
            on_ray(divide) as workers,
            pytest.raises(WorkerError, match=r"Ray cannot be used at nowhere \(RAY_ADDRESS\)"),
        ):
            workers.map([1])


COMMANDS = {
    "compare": ("fair", "random", "--jobs", "embedded:n=3", "--executors", 6, "--seeds", 3),
    "compare --system heterogeneous": (
        "heft",
        "random_deft",
        "--jobs",
        "embedded:n=2",
        "--edges",
        "ccr=2",
        "--seeds",
        3,
    ),
    "compare --system cloud": ("aep", "rr", "--jobs", "generated:n=6", "--seeds", 3),
    "tune": ("weighted_fair", "--jobs", "embedded:n=3", "--executors", 6, "--train", 3, "--test", 2, "--budget", 6),
}


def comparisons_and_tuning_of_all_systems(folder):
    """The commands `compare`, of all systems, and `tune` write the same tables as in threads."""
    for command, words in COMMANDS.items():
        said = {}
        for backend in ("threads", "ray"):
            out = folder / ("tuned.json" if command == "tune" else "scores.csv")
            result = run(*command.split(), *words, "--backend", backend, "--workers", 2, "--out", out)
            assert result.exit_code == 0, result.stderr
            said[backend] = result.stdout, out.read_bytes()
        assert said["ray"] == said["threads"], command


BRIEF = [
    *("--iterations", 2, "--seed", 4, "--set", "recipe.teacher_iterations=1", "--set", "recipe.sequences=1"),
    *("--set", "recipe.teacher_sequences=2", "--set", "recipe.rollouts=2", "--set", "recipe.validation_sequences=2"),
]
TRAININGS = {
    "spark": ("embedded:n=3", "--executors", 6),
    "heterogeneous": ("lachesis-batch:jobs=2",),
    "cloud": ("generated:n=6",),
}


def outcome(folder):
    # Without what depends on the clock.
    stored = Checkpoint.load(folder)
    counters = {name: value for name, value in stored.counters.items() if not name.endswith("_s")}
    return stored.arrays, counters, without_times(stored.curve)


def require_same(one, other):
    (arrays, *numbers), (other_arrays, *other_numbers) = outcome(one), outcome(other)
    assert same_arrays(arrays, other_arrays)
    assert numbers == other_numbers


def trainings_of_all_systems(folder):
    """The command `train` gives the same weights, optimiser and curve as in threads, for every system."""
    for system, words in TRAININGS.items():
        if system == "heterogeneous" and not tpch_available():
            continue  # its jobs are DAGs of TPC-H queries
        for backend in ("threads", "ray"):
            out = folder / f"{system} {backend}"
            result = run(
                "train", *words, "--system", system, *BRIEF, "--backend", backend, "--workers", 2, "--out", out
            )
            assert result.exit_code == 0, result.stderr
        require_same(folder / f"{system} threads", folder / f"{system} ray")


class Deadly(Rollouts):
    # Lets so many workers die in the third iteration.
    def __init__(self, folder, deaths):
        super().__init__(Mortal(folder, TASK), "ray", 2)
        self._folder, self._deaths, self._calls = folder, deaths, 0

    def collect(self, *arguments):
        self._calls += 1
        for number in range(self._deaths if self._calls == 3 else 0):
            (self._folder / f"death{number}").touch()
        return super().collect(*arguments)


def a_training_outlives_its_workers(folder):
    """It goes on where one dies; where all do, the last whole iteration is kept and resumed; with the same results."""
    from decima.systems.spark.policy.run import DecimaRun  # with TensorFlow

    training = DecimaRun(TASK, quick_recipe(checkpoint_every=99), NETWORK, 3)
    whole, hurt, broken = (folder / name for name in ("whole", "hurt", "broken"))
    training.trainer(whole, backend="threads", workers=2, tensorboard=False).train()
    with pytest.warns(RuntimeWarning, match="a Ray worker died, "):
        training.trainer(hurt, backend=Deadly(folder, 1), workers=2, tensorboard=False).train()
    require_same(hurt, whole)
    with pytest.warns(RuntimeWarning), pytest.raises(TrainingError, match="iteration 2: 3 Ray workers died"):
        training.trainer(broken, backend=Deadly(folder, 9), workers=2, tensorboard=False).train()
    assert Checkpoint.load(broken).counters["iteration"] == 2
    training.trainer(broken, backend="threads", workers=2, tensorboard=False).train(resume=True)
    require_same(broken, whole)
