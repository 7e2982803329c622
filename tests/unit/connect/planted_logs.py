"""Event logs of a cluster that obeys the simulator: what is planted in them is known."""

import json
from dataclasses import dataclass, field

import pandas

from decima.systems.spark.result import EpisodeLog
from decima.systems.spark.state import ClusterState
from decima.systems.spark.system import run_state
from decima.systems.spark.tables import WorkloadTables
from decima.workload.jobs import Job, Workload
from decima.workload.measured import profile_name
from decima.workload.profile import at_level
from measure.experiment import Plan
from measure.fidelity.simulation import RecordedOrder, cluster_settings
from measure.records import (
    CONTROL,
    AloneRun,
    BatchRecord,
    BatchRun,
    QueryTimes,
    append_alone_run,
    query_id,
    warm_up_key,
    write_record,
)

EPOCH_MS = 1_700_000_000_000


@dataclass
class PlantedLog:
    """One application; the clock of the log is `now_ms`, whole milliseconds as in Spark."""

    name: str
    executors: int
    dispatch_ms: int = 0
    start_ms: int = 0
    now_ms: int = EPOCH_MS
    events: list = field(default_factory=list)
    jobs: int = 0
    stages: int = 0
    tasks: int = 0
    rdds: int = 0
    names: list = field(default_factory=list)
    processes: int = 0

    def __post_init__(self):
        self.add("ApplicationStart", **{"App ID": self.name, "App Name": self.name, "Timestamp": self.now_ms})
        self.new_executors()

    def add(self, event, **values):
        self.events.append({"Event": f"SparkListener{event}", **values})

    def new_executors(self):
        """End those that are there and start others, which takes `start_ms`."""
        for name in self.names:
            gone = {"Timestamp": self.now_ms, "Executor ID": name, "Removed Reason": "asked for"}
            self.add("ExecutorRemoved", **gone)
        requested = self.now_ms
        self.now_ms += self.start_ms
        self.names = [str(self.processes + number) for number in range(self.executors)]
        self.processes += self.executors
        for name in self.names:
            info = {"Host": "localhost", "Total Cores": 1, "Request Time": requested}
            self.add("ExecutorAdded", **{"Timestamp": self.now_ms, "Executor ID": name, "Executor Info": info})

    def run(self, jobs, seed, *, named=False, **settings):
        """Simulate jobs (id, profile, arrival_ms) as Spark would run them, and log it; an empty id is no query.

        With `named`, the log tells that profile q01 is `q1-1g`, query 1 at scale factor 1.
        """
        profiles = [at_level(profile, self.executors) for _, profile, _ in jobs]
        workload = Workload(
            tuple(Job(profile, arrival) for profile, (_, _, arrival) in zip(profiles, jobs, strict=True)), "planted"
        )
        cluster = cluster_settings(self.executors, **settings)
        state = ClusterState(WorkloadTables(workload, cluster), cluster, log_tasks=True)
        run_state(state, RecordedOrder(range(state.tables.num_stages)), seed)
        log = EpisodeLog.of_state(state)
        begin, end = self.now_ms, self.now_ms
        for number, ((identity, _, arrival), profile) in enumerate(zip(jobs, profiles, strict=True)):
            mine = log.job == number
            submit = begin + round(arrival)
            self._job_start(identity, profile, submit, named)
            rows = zip(log.stage[mine], log.executor[mine], log.start_ms[mine], log.finish_ms[mine], strict=True)
            for partition, (stage, executor, start, finish) in enumerate(rows):
                launch = round(start) + self.dispatch_ms
                self._task(stage, partition, self.names[executor], begin + launch, begin + max(round(finish), launch))
            finish = begin + round(float(log.finish_ms[mine].max()))
            self.add(
                "JobEnd", **{"Job ID": self.jobs, "Completion Time": finish, "Job Result": {"Result": "JobSucceeded"}}
            )
            self.jobs += 1
            self.stages += len(profile.stages)
            self.rdds += len(profile.stages)
            end = max(end, finish)
        self.now_ms = end + 100

    def _job_start(self, identity, profile, submit, named):
        infos = [
            {
                "Stage ID": self.stages + index,
                "Number of Tasks": stage.num_tasks,
                "Parent IDs": [self.stages + parent for parent in stage.parents],
                "RDD Info": [{"RDD ID": self.rdds + index, "Name": f"operator {index}"}],
            }
            for index, stage in enumerate(profile.stages)
        ]
        properties = {"decima.query": identity} if identity else {}
        if named:
            properties["decima.profile"] = profile_name(int(profile.name[1:]), 1.0)
        values = {"Job ID": self.jobs, "Submission Time": submit, "Stage Infos": infos, "Properties": properties}
        self.add("JobStart", **values)

    def _task(self, stage, partition, executor, launch, finish):
        info = {
            "Task ID": self.tasks, "Index": partition, "Attempt": 0, "Partition ID": partition, "Launch Time": launch,
            "Executor ID": executor, "Host": "localhost", "Finish Time": finish, "Failed": False, "Killed": False,
        }  # fmt: skip
        values = {"Stage ID": self.stages + int(stage), "Stage Attempt ID": 0, "Task Type": "ShuffleMapTask"}
        self.add("TaskEnd", **values, **{"Task End Reason": {"Reason": "Success"}, "Task Info": info})
        self.tasks += 1

    def write(self, folder):
        """Write the log; returns its path."""
        self.add("ApplicationEnd", Timestamp=self.now_ms)
        path = folder / self.name
        path.write_text("".join(json.dumps(event, separators=(",", ":")) + "\n" for event in self.events))
        return path


def write_folders(folder, profiles, levels, repetitions=2):
    """What `decima spark profile` and `decima spark validate` leave, of profiles named q01, q02 and so on."""
    alone, mix = folder / "alone", folder / "mix"
    (alone / "events").mkdir(parents=True)
    (mix / "events").mkdir(parents=True)
    for repetition in range(repetitions):
        for executors in levels:
            name = f"sf1-e{executors}-r{repetition}-a0.json"
            log = PlantedLog(name, executors, start_ms=3000)
            log.run([("", profiles[0], 0.0)], seed=0)
            for kind in ("warm", "fresh"):
                for number, profile in enumerate(profiles):
                    if kind == "fresh":
                        log.new_executors()
                    identity = f"{profile.name}#{kind}-{repetition}"
                    log.run([(identity, profile, 0.0)], seed=100 * repetition + number, fresh=kind == "fresh")
                    append_alone_run(alone, measured_run(identity, name, profile.name, kind, executors, repetition))
            log.write(alone / "events")
    plan = Plan(1.0, levels[-1], len(profiles), 1, repetitions, (), True)
    (mix / "card.json").write_text(json.dumps({"plan": plan.as_dict()}))
    log = PlantedLog("app-00-control.json", levels[-1])
    for number in range(3):
        for profile in profiles:
            log.run([(query_id(warm_up_key(number, profile.name), 0), profile, 0.0)], seed=number, named=True)
    for repetition in range(repetitions):
        times = tuple(QueryTimes(profile.name, 0.0, 0.0, 1) for profile in profiles)
        record = BatchRecord(BatchRun(0, repetition, CONTROL), 0, log.name, times, {}, False)
        write_record(mix, record)
        jobs = [(query_id(record.key, number), profile, 20.0 * number) for number, profile in enumerate(profiles)]
        log.run(jobs, seed=1000 + repetition, named=True)
    log.write(mix / "events")
    for name, queries in (("alone", 1), ("mix", len(profiles))):
        _write_steered(folder / "steered" / name, profiles, levels[-1], queries, repetitions)


def _write_steered(folder, profiles, executors, queries, repetitions):
    """What `decima spark experiment` leaves of FIFO behind the plugin, here under the name of Decima."""
    (folder / "events").mkdir(parents=True)
    plan = Plan(1.0, executors, queries, len(profiles) // queries, repetitions, ("decima",), False)
    card = {"plan": plan.as_dict(), "schedulers": {"decima": {"scheduler": "fifo", "parameters": {}}}}
    (folder / "card.json").write_text(json.dumps(card))
    log = PlantedLog("app-00-plugin.json", executors)
    log.run([(query_id(warm_up_key(0, profile.name), 0), profile, 0.0) for profile in profiles], seed=0, named=True)
    rows = []
    for number, run in enumerate(plan.runs()):
        rows.append(vars(run) | {"run": number, "attempt": 0, "usable": True, "log": log.name})
        mine = profiles[run.batch * queries : (run.batch + 1) * queries]
        jobs = [(query_id(f"{run.key}-a0", place), profile, 20.0 * place) for place, profile in enumerate(mine)]
        log.run(jobs, seed=2000 + number, named=True)
    log.write(folder / "events")
    pandas.DataFrame(rows).to_csv(folder / "runs.csv", index=False)
    pandas.DataFrame({"run": []}).to_csv(folder / "jobs.csv", index=False)
    pandas.DataFrame({"run": []}).to_parquet(folder / "tasks.parquet", index=False)


def measured_run(identity, log, query, kind, executors, repetition, wait_share=0.1):
    """A row of `runs.csv` for a planted run."""
    values = dict.fromkeys(("start_s", "duration_s", "run_s", "wait_s", "foreign_share", "load_average"), 0.0)
    values |= {"executor_start_s": None, "pressure": None, "rows": 1, "attempt": 0, "scale": 1.0}
    values |= {"id": identity, "log": log, "query": query, "kind": kind, "executors": executors}
    return AloneRun(**values, repetition=repetition, wait_share=wait_share)
