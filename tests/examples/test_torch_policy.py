"""Policies in PyTorch: probabilities of the compiled core, weights there and back, the example."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import ppo_torch  # noqa: E402
from torch_policy import DecimaModule, episodes, graph, tensors  # noqa: E402

from decima.learning.store import read_policy  # noqa: E402
from decima.systems.spark.gym.environment import SparkClusterEnv  # noqa: E402
from decima.systems.spark.policy.architecture import Architecture  # noqa: E402
from decima.systems.spark.settings import Settings  # noqa: E402
from decima.workload.sources import parse_jobs  # noqa: E402

CLASSES = Settings.paper(classes=[(0.25, 3), (0.5, 3), (0.75, 3), (1.0, 3)])
PLAIN = Settings.paper(executors=12)


def recorded(module, settings, jobs="embedded:n=3"):
    """Records of two episodes and the module's results for them."""
    scheduler = module.scheduler(greedy=False, record=True)
    records, batch = episodes(scheduler, [parse_jobs(jobs).workload(seed) for seed in (1, 2)], settings, [3, 4])
    with torch.no_grad():
        return records, module(tensors(batch))


def same_probabilities(records, result):
    """Compare what the core recorded with the module's probabilities, to 1e-5."""
    different = np.concatenate([record.classes > 1 for record in records])
    for part in ("stage", "limit", "class", "delay"):
        if f"log_prob_{part}" not in result:
            continue
        core = np.concatenate([getattr(record, f"log_prob_{part}") for record in records])
        core = core if part in ("stage", "delay") else np.where(different, core, 0.0)
        np.testing.assert_allclose(np.exp(result[f"log_prob_{part}"].numpy()), np.exp(core), atol=1e-5, err_msg=part)
    assert len(core) > 20


@pytest.mark.parametrize(
    ("name", "settings", "jobs"),
    [
        ("embedded-batch-random", PLAIN, "embedded:n=3"),
        ("released-batch", Settings.released(executors=12), "embedded:n=3"),
        ("tpch-stream", PLAIN, "embedded:n=3,interarrival_s=20"),
        ("tpch-classes", CLASSES, "embedded:n=3,requests=uniform"),
        ("idle-rare-long-2", Settings.simplified(executors=2), "rare_long:n=12"),
    ],
)
def test_stored_policies_have_the_probabilities_of_the_core(name, settings, jobs):
    module = DecimaModule.stored(name)
    same_probabilities(*recorded(module, settings, jobs))
    np.testing.assert_array_equal(module.flat(), read_policy(name).weights)


@pytest.mark.parametrize(
    "changes",
    [
        {"limit": "output", "max_executors": 12},
        {"limit": "none"},
        {"graph_embedding": False, "limit_grid": 5},
        {"two_level": False, "cluster_mean": True, "limit": "stage"},
        {"delays": 3, "delay_context": "embedding"},
    ],
    ids=str,
)
def test_random_networks_have_the_probabilities_of_the_core(changes):
    module = DecimaModule(Architecture.paper(**changes), seed=5)
    same_probabilities(*recorded(module, PLAIN))


def test_a_trained_module_is_stored_and_decides(tmp_path):
    module = DecimaModule(Architecture.paper(), seed=1)
    jobs = [parse_jobs("embedded:n=3").workload(1)]
    _, batch = episodes(module.scheduler(greedy=False, record=True), jobs, PLAIN, [3])
    before, loss = module.flat(), -module(tensors(batch))["log_prob_stage"].mean()
    loss.backward()
    torch.optim.SGD(module.parameters(), lr=0.1).step()
    assert not np.array_equal(module.flat(), before)
    assert -module(tensors(batch))["log_prob_stage"].mean().item() < loss.item()
    path = module.save(tmp_path / "mine", {"greedy": True})
    np.testing.assert_array_equal(DecimaModule.stored(path).flat(), module.flat())


def test_graph_has_the_rows_of_the_observation():
    pytest.importorskip("torch_geometric")
    env = SparkClusterEnv("embedded:n=3,interarrival_s=20", executors=8, max_jobs=5)
    seen, _ = env.reset(seed=0)
    shown = graph(seen)
    stages = int((seen["stage_job"] >= 0).sum())
    assert shown.num_nodes == stages < len(seen["stage_job"])
    np.testing.assert_array_equal(shown.x, seen["stages"][:stages])
    np.testing.assert_array_equal(shown.edge_index.T, seen["edges"][seen["edges"][:, 0] >= 0])
    assert shown.mask.sum() == seen["stage_mask"][:-1].sum() > 0
    assert shown.jobs.shape == (int(shown.job.max()) + 1, 3)
    assert shown.free_executors.item() == 8
    assert shown.validate()


def test_example_learns_in_small():
    small = [
        "--jobs",
        "embedded:n=4",
        "--executors",
        "8",
        "--sequences",
        "2",
        "--fresh",
        "6",
        "--learning-rate",
        "0.01",
    ]
    before = ppo_torch.main([*small, "--iterations", "0"])
    after = ppo_torch.main([*small, "--iterations", "12"])
    assert after["fair"][0] == before["fair"][0]
    assert after["policy"][0] < before["policy"][0]
