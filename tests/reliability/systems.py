"""How every system is run at random and replayed from its files; a registered system without an entry fails a test."""

import contextlib
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

import decima
import decima.systems.cloud.system  # registers itself
from decima.commands.shared.outputs import result_document, write_json, write_table
from decima.commands.systems import cloud as cloud_options
from decima.commands.systems import spark as spark_options
from decima.core.errors import DeadlockError
from decima.core.grammar import value_text
from decima.core.system import get_system
from decima.systems.spark.schedulers import list_schedulers, make_scheduler
from decima.systems.spark.schedulers.registry import scheduler_options
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import new_state
from decima.systems.spark.system import run_state
from tests import services
from tests.drivers import Idler, Through
from tests.random_clusters import ELASTIC, FIXED, asking, of_kind, random_settings, random_workload
from tests.reliability import replays
from tests.reliability.deciders import random_parameters, random_policy
from tests.reliability.heterogeneous_runs import HeterogeneousExecutors
from tests.unit.commands.calls import run


class Checked(Protocol):
    """What the tests need of a system."""

    def replay(self, *files: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the files of a run say, and what the oracle finds, with the same keys."""

    def subjects(self) -> list[str]:
        """Names of all schedulers, and of other ways to decide; random runs take one after the other."""

    def random_run(self, seed: int, subject: str, folder: Path) -> tuple[Path, ...] | None:
        """Run at random and write the files; None for a run that rightly came to no end."""

    def good_run(self, folder: Path) -> tuple[Path, ...]:
        """Files of a run in which much happens."""


# Schedulers for clusters whose executors neither come, go nor fail.
ON_FIXED = ("remote",)
# Ways to decide that are no registered scheduler.
OBJECTS = {"python": lambda rng: Through("random"), "idler": lambda rng: Idler(0.05), "network": random_policy}


class SparkCluster:
    """The simulated Spark cluster: schedulers by name through the command line, objects through the library."""

    replay = staticmethod(replays.spark)

    def subjects(self):
        return [*list_schedulers(), *OBJECTS]

    def random_run(self, seed, subject, folder):
        rng = np.random.default_rng(seed)
        workload, settings = random_workload(rng, max_jobs=6, max_tasks=9), random_settings(rng)
        kind = FIXED if seed % 3 == ELASTIC and subject in ON_FIXED else seed % 3
        workload, settings = of_kind(kind, workload, settings, rng)
        files = _files(folder)
        decima.workload.save(workload, files[0])
        with contextlib.ExitStack() as stack:
            if subject in OBJECTS:
                write, scheduler = _library, OBJECTS[subject](rng)
            else:
                write, scheduler = _command_line, _random_text(subject, rng, stack, files, settings, seed)
            try:
                write(workload, settings, scheduler, seed, files)
            except DeadlockError:
                _require_idling(workload, settings, make_scheduler(scheduler), seed)
                return None
        return files

    def good_run(self, folder):
        seed, files = 29, _files(folder)
        workload = random_workload(np.random.default_rng(seed), max_jobs=6, kind="real", max_tasks=9)
        workload = asking(workload, np.random.default_rng(seed))
        decima.workload.save(workload, files[0])
        settings = Settings(classes=((0.5, 2), (1.0, 3)))
        _library(workload, settings, make_scheduler("weighted_fair"), seed, files)
        return files

    def good_elastic_run(self, folder):
        """With removals, losses, tasks that run again, outputs that are computed again, and copies."""
        files, workload = (
            _files(folder),
            random_workload(np.random.default_rng(12), max_jobs=6, kind="real", max_tasks=9),
        )
        values = {"executor_cores": 2, "dynamic": True, "initial_executors": 4, "idle_timeout_ms": 1500.0}
        values |= {"speculation": True, "speculation_quantile": 0.5, "speculation_multiplier": 1.0}
        decima.workload.save(workload, files[0])
        settings = Settings(executors=8, **values, loss_times_ms=(8e3, 12e3, 16e3))
        _library(workload, settings, make_scheduler("fair"), 4, files)
        return files


def _files(folder):
    return folder / "jobs.json", folder / "result.json", folder / "tasks.csv"


def _library(workload, settings, scheduler, seed, files):
    result = decima.simulate(workload, scheduler, seed=seed, cluster=settings, log=True)
    write_json(files[1], result_document(spark_options, result, {}, seed))
    write_table(files[2], result.log.tasks())


def _command_line(workload, settings, scheduler, seed, files):
    """`decima simulate` with any settings."""
    words = ["--mode", settings.mode, "--durations", settings.durations]
    if settings.classes:
        words += ["--classes", ",".join(f"{each.memory}x{each.cpu}:{each.executors}" for each in settings.classes)]
    else:
        words += ["--executors", settings.executors]
    plain, with_option = Settings.of_mode(settings.mode), ("executors", "mode", "durations", "classes")
    for name, value in settings.as_dict().items():
        # the level rule of mode released follows the durations
        if name == "level_rule" or (value != getattr(plain, name) and name not in with_option):
            words += ["--set", f"settings.{name}={value_text(value)}"]
    jobs, result, tasks = files
    done = run(
        *("simulate", "--jobs", jobs, "--scheduler", scheduler, *words),
        *("--seed", seed, "--out", result, "--log", tasks),
    )
    if "parked every executor" in done.stderr:
        raise DeadlockError(done.stderr)
    assert (done.exit_code, done.stderr) == (0, "")


def _random_text(name, rng, stack, files, settings, seed):
    """A registered scheduler with the options that it needs, else with random parameters."""
    values = {
        option.name: _needed(option.name, stack, files, settings, seed)
        for option in scheduler_options(name)
        if option.required
    }
    values = values or random_parameters(name, rng)
    return f"{name}:{','.join(f'{key}={value}' for key, value in values.items())}" if values else name


def _needed(option, stack, files, settings, seed):
    """Value of an option without which a scheduler cannot be made; one that is not known here fails the test."""
    if option == "file":
        before = files[1].with_name("before.json")
        _command_line(None, settings, "random", seed, (files[0], before, files[2]))
        return before
    if option == "service":
        return stack.enter_context(services.running(services.sessions_of("random"))).target
    if option == "budget":
        return 64
    raise AssertionError(f"no value is known for the option {option!r} of a scheduler: give it one here")


def _require_idling(workload, settings, scheduler, seed):
    """A run may come to no end only where the scheduler itself said that executors should idle."""
    state = new_state(workload, settings, log_decisions=True)
    with pytest.raises(DeadlockError):
        run_state(state, scheduler, seed)
    stage = state.logged_decisions[-1][5]
    assert stage == -1, "no event is left, but the last decision was not to idle"


class CloudVms:
    """Executors of jobs on VMs: rules by name, random VMs, billing and weights, whole and broken seconds."""

    replay = staticmethod(replays.cloud)

    def subjects(self):
        return [name for name in get_system("cloud").list_schedulers() if name != "remote"]  # which needs a service

    def random_run(self, seed, subject, folder):
        rng = np.random.default_rng(seed)
        parts = int(rng.choice([1, 8, 10]))  # of a second: whole ones, eighths, which floats hold, and tenths
        changes = {
            "billing.granularity_s": rng.choice([0, 0, 60, 600, 3600, 0.5]),
            "billing.minimum_s": rng.choice([0, 0, 60, 45.5]),
            "billing.boot_s": rng.choice([0, 0, 30, 12.5]),
            "rules.penalty_percent": rng.choice([30, 30, 12.5, 100]),
            "rules.penalty_in_cost_max": rng.choice(["true", "false"]),
        }
        plain = rng.random() < 0.3  # the paper's billing and rules
        vms = _vms(rng) if rng.random() < 0.7 else None
        beta = float(rng.choice([0.0, 0.25, 0.5, 1.0]))
        files = _placement_files(folder, rng, int(rng.integers(2, 13)), parts, vms)
        _simulate(folder, files, subject, beta, seed, {} if plain else changes, command_line=seed % 3 == 0)
        return files

    def good_run(self, folder):
        files = _placement_files(folder, np.random.default_rng(3), 12, 10, None)
        changes = {"billing.granularity_s": 60, "billing.boot_s": 30}
        _simulate(folder, files, "rrc", 0.5, 0, changes, command_line=True)
        return files


def _vms(rng):
    """A few VMs of two or three kinds, the largest of which hold every executor: (cores, GB, how many, price)."""
    kinds = [(int(rng.choice([2, 4, 6])), int(rng.choice([4, 8, 12])), int(rng.integers(1, 3)), 0.24)]
    kinds += [(4, 12, int(rng.integers(1, 5)), float(rng.choice([0.1, 0.24, 0.3])))]
    if rng.random() < 0.5:
        kinds += [(12, 48, 1, 0.72)]
    return kinds


def _placement_files(folder, rng, number, parts, vms):
    """Jobs that fit the VMs, with times in parts of a second; paths of the files of a run."""
    rows = ["arrival_s,id,type,cores,memory_gb,executors,duration_s"]
    spread = int(rng.choice([1, 40, 200]))
    for index, at in enumerate(np.sort(rng.integers(1, spread * parts + 1, number)).tolist(), 1):
        kind, cores, executors, memory_gb = (int(rng.integers(*ends)) for ends in ((1, 4), (1, 5), (1, 5), (1, 13)))
        room = sum(count * min(each // cores, gb // memory_gb) for each, gb, count, _ in vms or [(4, 16, 4, 0)])
        took = int(rng.integers(5 * parts, 120 * parts))
        rows.append(f"{at / parts},{index},{kind},{cores},{memory_gb},{min(executors, room)},{took / parts}")
    files = folder / "jobs.csv", folder / "result.json", folder / "executors.csv"
    files[0].write_text("\n".join(rows) + "\n")
    if vms is not None:
        table = [f"kind{index},{','.join(map(str, kind))}" for index, kind in enumerate(vms)]
        (folder / "vms.csv").write_text("\n".join(["type,cores,memory_gb,quantity,price_per_hour", *table]) + "\n")
    return files


def _simulate(folder, files, policy, beta, seed, changes, *, command_line):
    """One episode and its files, through the command line or with what stands behind it."""
    vms, changed = folder / "vms.csv", [f"{key}={value}" for key, value in changes.items()]
    if command_line:
        call = ["--system", "cloud", "--jobs", files[0], "--scheduler", policy, "--beta", beta, "--seed", seed]
        call += ["--vms", vms] if vms.exists() else []
        call += [word for change in changed for word in ("--set", change)]
        done = run("simulate", *call, "--out", files[1], "--log", files[2])
        assert (done.exit_code, done.stderr) == (0, "")
        return
    options = cloud_options.Options(
        jobs=str(files[0]), vms=str(vms) if vms.exists() else "", beta=beta, changes=changed
    )
    scheduler = get_system("cloud").make_scheduler(policy)
    workload, settings = options.spec().workload(seed), options.settings()
    result = cloud_options.checked(decima.simulate(workload, scheduler, seed=seed, cluster=settings, log=True))
    write_json(files[1], result_document(cloud_options, result, getattr(scheduler, "values", {}), seed))
    write_table(files[2], cloud_options.task_table(result))


#: Name of a system -> how it is run and checked.
CHECKED = {"spark": SparkCluster(), "heterogeneous": HeterogeneousExecutors(), "cloud": CloudVms()}
