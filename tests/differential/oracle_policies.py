"""Policies for the oracle: replay of logged decisions, the two released heuristics, random choice."""

import math


class Replay:
    """Feeds rows [.., job, stage, limit, .., delay] of a decision log one after another."""

    def __init__(self, decisions):
        self.rows = iter([(*row[4:7], *row[8:]) for row in decisions])

    def __call__(self, oracle):
        return next(self.rows)


def pick(job, frontier):
    """First runnable stage of the job that can be chosen, else its first that can be, else None."""
    choices = [stage for stage in frontier if stage.job is job]
    return next((stage for stage in job.runnable if stage in choices), choices[0] if choices else None)


class DynamicPartition:
    """The released fair heuristic: the source's own job first, then the first job below an equal share."""

    def cap(self, oracle):
        busy = sum(any(not stage.saturated for stage in job.stages) for job in oracle.jobs)
        return math.ceil(oracle.num_executors / max(1, busy))

    def held(self, oracle, job):
        return oracle.held(job)

    def granted(self, job, executors):
        """Called when a job other than the source's gets executors."""

    def __call__(self, oracle):
        frontier = oracle.frontier()
        if oracle.source_job is not None:
            stage = pick(oracle.source_job, frontier)
            if stage is not None:
                return stage.job.index, stage.index, oracle.num_source
        cap = self.cap(oracle)
        for job in oracle.jobs:
            free = cap - self.held(oracle, job)
            stage = pick(job, frontier) if free > 0 else None
            if stage is not None:
                executors = min(stage.room, free, oracle.num_source)
                self.granted(job, executors)
                return job.index, stage.index, executors
        return None, None, oracle.num_source


class SparkFifo(DynamicPartition):
    """The released FIFO heuristic: a job is full once granted the cap, even if it gave executors back."""

    def __init__(self):
        self.total = {}

    def cap(self, oracle):
        return oracle.num_executors

    def held(self, oracle, job):
        return self.total.get(job, 0)

    def granted(self, job, executors):
        self.total[job] = self.held(None, job) + executors
