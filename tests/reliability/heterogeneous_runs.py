"""How plans of heterogeneous executors are made at random to be checked."""

import json

import numpy as np

from decima.systems.heterogeneous import Cluster, Instance, Job, list_schedulers, make_scheduler
from decima.systems.heterogeneous.json_format import save_instance, schedule_document
from decima.systems.heterogeneous.optimum.exact import optimum
from decima.systems.heterogeneous.settings import DECISIONS, SLOTS, TRANSFERS
from tests.heterogeneous_instances import draw_instance
from tests.reliability import replays
from tests.unit.commands.calls import run

# Nodes and executors of instances whose optimum the integer program proves, with further copies or without.
TINY = {True: ((4, 2), (3, 3)), False: ((5, 2), (4, 3))}


def random_instance(rng, *, jobs=3, nodes=8, executors=4):
    """Small jobs; ties, nodes without work, data of no size, a rate for each pair, infinite rates, latency, costs."""
    instance = draw_instance(
        int(rng.integers(2**31)),
        jobs=int(rng.integers(1, jobs + 1)),
        nodes=nodes,
        executors=int(rng.integers(1, executors + 1)),
        ccr=float(rng.choice([0.0, 0.1, 1.0, 5.0, 20.0])),
        stream=bool(rng.random() < 0.5),
        kind=str(rng.choice(["speeds", "rates", "costs"])),
        whole=bool(rng.random() < 0.5),
    )
    cluster, made = instance.cluster, instance.jobs
    if rng.random() < 0.3:  # as pseudo nodes at the begin and the end have none
        made = [
            Job(job.name, job.work * (rng.random(len(job)) < 0.6), job.edges, job.data, job.arrival_s) for job in made
        ]
    rate = cluster.rate
    if rng.random() < 0.2:
        rate = np.inf if cluster.uniform else np.where(rng.random(rate.shape) < 0.3, np.inf, rate)
    return Instance(made, Cluster(cluster.speeds, rate, cluster.latency_s, cluster.costs))


def random_text(name, rng):
    """A scheduler with random settings of those that it leaves open, as text."""
    entry = make_scheduler(name).entry
    choices = {"decision": DECISIONS, "slots": SLOTS, "transfers": TRANSFERS, "duplicate": ("true", "false")}
    values = {key: str(rng.choice(known)) for key, known in choices.items() if key in entry.open and rng.random() < 0.4}
    if values.get("decision", entry.rules.decision) == "idle":
        values.pop("slots", None)
        if "slots" in entry.open:
            values["slots"] = "append"
        elif entry.rules.slots == "insertion":
            values.pop("decision", None)
    return f"{name}:{','.join(f'{key}={value}' for key, value in values.items())}" if values else name


class HeterogeneousExecutors:
    """Plans through the command line, proofs through the library."""

    replay = staticmethod(replays.heterogeneous)

    def subjects(self):
        return [*list_schedulers(bare=True), *["optimum exact"] * 4]

    def random_run(self, seed, subject, folder):
        rng, files = np.random.default_rng(seed), (folder / "instance.json", folder / "result.json")
        if subject == "optimum exact":
            duplicate = bool(rng.random() < 0.5)
            nodes, executors = TINY[duplicate][int(rng.integers(2))]
            instance = random_instance(rng, jobs=1, nodes=nodes, executors=executors)
            save_instance(instance, files[0])
            _write(files[1], _proved(instance, duplicate))
        else:
            save_instance(random_instance(rng, nodes=12), files[0])
            words = ("--jobs", files[0], "--scheduler", random_text(subject, rng), "--seed", seed, "--out", files[1])
            done = run("simulate", "--system", "heterogeneous", *words)
            assert (done.exit_code, done.stderr) == (0, "")
        return files

    def good_run(self, folder):
        """Two long children of a node whose data is large, and a job that comes later: proved."""
        fork = Job("fork", [1.0, 10.0, 10.0], [(0, 1), (0, 2)], [50.0, 50.0])
        instance = Instance([fork, Job("late", [2.0], arrival_s=3.0)], Cluster([1.0, 1.0], 1.0))
        files = folder / "instance.json", folder / "result.json"
        save_instance(instance, files[0])
        _write(files[1], _proved(instance, True))
        return files


def _proved(instance, duplicate):
    """Content of a file with the optimum."""
    found = optimum(instance, duplicate=duplicate)
    document = schedule_document(found.schedule)
    return document | {"makespan_s": found.makespan_s, "optimum": {"duplicate": duplicate}}


def _write(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")
