"""Made-up records of episodes, for tests of the network and of batches without running a simulation."""

from dataclasses import MISSING, dataclass, fields

import numpy as np


@dataclass
class Record:
    """The arrays of an ``EpisodeRecord`` that batches read."""

    instance_first: np.ndarray
    node_row: np.ndarray
    node_local: np.ndarray
    x: np.ndarray
    decision_pairs: np.ndarray
    pair_instance: np.ndarray
    decision_candidates: np.ndarray
    candidate_node: np.ndarray
    candidate_instance: np.ndarray
    choice: np.ndarray
    limit: np.ndarray
    limit_low: np.ndarray
    limit_high: np.ndarray
    classes: np.ndarray
    delay: np.ndarray | None = None
    delay_free: np.ndarray | None = None
    instance_shape: np.ndarray | None = None
    class_inputs: np.ndarray | None = None
    limit_levels: np.ndarray = ()

    def __post_init__(self):
        for name in ("delay", "delay_free"):
            if getattr(self, name) is None:
                setattr(self, name, np.zeros(len(self.choice)))
        if self.instance_shape is None:
            self.instance_shape = np.zeros((len(self.instance_first) - 1, 0))
        if self.class_inputs is None:
            self.class_inputs = np.zeros((len(self.candidate_node), 0))
        for field in fields(self):
            real = field.name in ("x", "instance_shape", "class_inputs")
            dtype = np.float32 if real else np.int32
            setattr(self, field.name, np.asarray(getattr(self, field.name), dtype=dtype))


@dataclass
class Tables:
    """Profile tables: rows of one job are consecutive."""

    child_offset: np.ndarray
    child: np.ndarray
    first_row: np.ndarray

    @classmethod
    def of(cls, jobs):
        """From jobs, each a list of the children of every stage."""
        kids = [children for job in jobs for children in job]
        return cls(
            np.concatenate([[0], np.cumsum([len(children) for children in kids])]).astype(np.int32),
            np.array([kid for children in kids for kid in children], dtype=np.int32),
            np.concatenate([[0], np.cumsum([len(job) for job in jobs])])[:-1],
        )


def random_jobs(rng, count, stages=(1, 10)):
    """DAGs in a random numbering: children of every stage of every job."""
    jobs = []
    for _ in range(count):
        size = int(rng.integers(stages[0], stages[1] + 1))
        label = rng.permutation(size)
        children = [[] for _ in range(size)]
        for stage in range(size - 1):
            later = rng.choice(
                np.arange(stage + 1, size), size=min(int(rng.integers(0, 3)), size - 1 - stage), replace=False
            )
            children[label[stage]] = sorted(int(label[kid]) for kid in later)
        jobs.append(children)
    return jobs


def closed_subset(rng, children):
    """Unfinished stages of a job, at least one: with a stage its children, but for one that runs again."""
    keep = set()
    stack = [int(rng.integers(len(children))) for _ in range(int(rng.integers(1, len(children) + 1)))]
    while stack:
        stage = stack.pop()
        if stage not in keep:
            keep.add(stage)
            stack.extend(children[stage])
    parents = {stage: [one for one in keep if stage in children[one]] for stage in keep}
    finished = [stage for stage in keep if all(len(keep & {*children[one]}) > 1 for one in parents[stage])]
    if len(keep) > 1 and finished and rng.random() < 0.3:
        keep.remove(int(rng.choice(sorted(finished))))  # a parent of it runs again
    return sorted(keep)


def random_record(
    rng, jobs, decisions, active=(1, 6), features=5, executors=8, fresh=2, shape=0, delays=0, classes=0, levels=()
):
    """An episode whose decisions share most job graphs, as real ones do.

    Args:
        jobs: Children of every stage of every job.
        active: Smallest and largest number of active jobs.
        fresh: Job graphs that are new at a decision.
        shape: Numbers of the shape of a job.
        delays: Largest r of idle slots.
        classes: Numbers of the class of a candidate.
        levels: Limits to choose from; all up to ``executors`` if there are none.
    """
    first_row = Tables.of(jobs).first_row
    out = {field.name: [] for field in fields(Record) if field.default is MISSING}
    out["instance_first"], out["decision_pairs"], out["decision_candidates"] = [0], [0], [0]
    present = []  # (instance, stages)

    def add_instance():
        job = int(rng.integers(len(jobs)))
        stages = closed_subset(rng, jobs[job])
        out["node_row"] += [int(first_row[job]) + stage for stage in stages]
        out["node_local"] += stages
        out["x"].append(rng.normal(size=(len(stages), features)))
        out["instance_first"].append(len(out["node_row"]))
        return len(out["instance_first"]) - 2, stages

    for _ in range(decisions):
        wanted = int(rng.integers(active[0], active[1] + 1))
        rng.shuffle(present)
        present = present[: max(wanted - fresh, 0)]
        while len(present) < wanted:
            present.append(add_instance())
        candidates = [
            (out["instance_first"][instance] + index, instance)
            for instance, stages in present
            for index in range(len(stages))
            if rng.random() < 0.5
        ]
        if not candidates:
            candidates = [(out["instance_first"][present[0][0]], present[0][0])]
        out["pair_instance"] += [instance for instance, _ in present]
        out["decision_pairs"].append(len(out["pair_instance"]))
        out["choice"].append(len(out["candidate_node"]) + int(rng.integers(len(candidates))))
        out["candidate_node"] += [node for node, _ in candidates]
        out["candidate_instance"] += [instance for _, instance in candidates]
        out["decision_candidates"].append(len(out["candidate_node"]))
        if len(levels):
            allowed = levels[int(rng.integers(len(levels))) :]
            out["limit_low"].append(allowed[0])
            out["limit_high"].append(allowed[-1])
            out["limit"].append(int(rng.choice(allowed)))
            out["classes"].append(int(rng.integers(1, len(allowed) + 1)))
            continue
        low = int(rng.integers(1, executors + 1))
        out["limit_low"].append(low)
        out["limit_high"].append(executors)
        out["limit"].append(int(rng.integers(low, executors + 1)))
        out["classes"].append(int(rng.integers(1, executors - low + 2)))
    out["x"] = np.concatenate(out["x"])
    if shape:
        out["instance_shape"] = rng.normal(size=(len(out["instance_first"]) - 1, shape))
    if delays:
        out["delay_free"] = rng.random(decisions) < 0.6
        out["delay"] = out["delay_free"] * rng.integers(0, delays + 1, decisions)
    if classes:
        out["class_inputs"] = rng.normal(size=(len(out["candidate_node"]), classes))
    return Record(**out, limit_levels=levels)
