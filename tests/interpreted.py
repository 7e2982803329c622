"""Small runs of every system as digests, the same compiled and in plain Python; as a script it prints them."""

import hashlib
import json
import sys

import numpy as np

import decima
from decima.systems import cloud, heterogeneous
from decima.systems.heterogeneous.generators import tpch_instance
from decima.workload import embedded_batch, embedded_poisson
from tests.drivers import IN_CORE

# Need arrays or files from outside.
_NOT_ALONE = ("decima", "priority", "remote", "replay")
_CLASSES = {"classes": ((0.25, 2), (0.5, 2), (0.75, 1), (1.0, 1)), "executors": None}
_ELASTIC = {"dynamic": True, "shuffle_service": True, "loss_rate": 2.0, "straggler_share": 0.2, "speculation": True}


def digest(*arrays):
    """Digest of all bits of arrays."""
    parts = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    return hashlib.sha256(parts).hexdigest()[:16]


def spark(jobs, scheduler, **settings):
    """Decisions and completions of a run."""
    settings = {"executors": 6, "seed": 1} | settings
    result = decima.simulate(jobs, scheduler, log=True, **settings)
    return digest(result.log.decisions[:, :8], result.completion_ms)


def outcomes():
    """Digests by case."""
    batch, stream, instance = embedded_batch(3, 0), embedded_poisson(4, 20.0, 0), tpch_instance(3, 0, executors=5)
    rules = [name for name in IN_CORE if name not in _NOT_ALONE]
    done = {f"spark {name}": spark(batch, name) for name in (*rules, "decima:embedded-batch", "decima:released-batch")}
    sampled = decima.load_policy("tpch-stream", greedy=False)
    done |= {f"spark sampled, {mode}": spark(stream, sampled, mode=mode) for mode in ("paper", "released")}
    done["spark elastic"] = spark(stream, "weighted_fair", **_ELASTIC)
    done["spark classes"] = spark(batch, "decima:alibaba-classes", **_CLASSES)
    done["spark idle slots"] = spark(batch, "idle_rule")
    for name in heterogeneous.list_schedulers():
        schedule = heterogeneous.plan(instance, scheduler=name, seed=1)
        done[f"heterogeneous {name}"] = digest(schedule.executor, schedule.start_s, schedule.finish_s)
    for name in cloud.list_placements():
        result = cloud.simulate("generated:n=6", name, seed=1)
        done[f"cloud {name}"] = digest(result.where, result.finish_s, result.job_cost)
    return done


if __name__ == "__main__":
    json.dump(outcomes(), sys.stdout, indent=1)
