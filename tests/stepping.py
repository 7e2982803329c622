"""Runs of the core with decisions written down by hand."""

import numpy as np

from decima.systems.spark.result import Result
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import new_state


class Steps:
    """A run that is fed one decision after the other.

    Args:
        jobs: A workload.
        executors: Executors.
        mode: Name of a mode; durations are means unless `settings` say otherwise.
        **settings: Further settings.
    """

    def __init__(self, jobs, executors, mode="paper", **settings):
        self.workload = jobs
        settings = Settings.of_mode(mode, executors=executors, **({"durations": "mean"} | settings))
        self.state = new_state(jobs, settings, log_tasks=True, log_decisions=True)
        self.state.start(np.random.default_rng(0), np.random.default_rng(1))
        self.running = self.state.advance()

    @property
    def offer(self):
        """(time in s, source job, executors offered) of the open round; None at the end."""
        state = self.state
        return (state.now_ms / 1000.0, state.source_job, state.num_source) if self.running else None

    @property
    def frontier(self):
        """(job, stage) that can be chosen."""
        stages = self.state.frontier()
        jobs = self.state.stage_job[stages]
        return list(zip(jobs.tolist(), (stages - self.state.job_first_stage[jobs]).tolist(), strict=True))

    def choose(self, job, stage, limit, *options):
        """Take a decision and run to the next offer, which is returned."""
        self.state.decide(-1 if job is None else int(self.state.job_first_stage[job]) + stage, limit, *options)
        self.running = self.state.advance()
        return self.offer

    def idle(self, count=None):
        """Leave executors idle, all by default."""
        return self.choose(None, None, self.state.num_source if count is None else count)

    def finish(self):
        """All executors to the first runnable stage, else idle, until the end; returns the result."""
        while self.running:
            stages = [stage for stage in self.state.frontier() if self.state.stage_runnable[stage]]
            limit = self.state.num_executors if self.state.job_limit else self.state.num_source
            self.state.decide(*((int(stages[0]), limit) if stages else (-1, self.state.num_source)))
            self.running = self.state.advance()
        return self.result()

    def result(self):
        return Result.of_state(self.state, self.workload, "by hand", 0)

    def tasks(self):
        """(job, stage, executor, start in s, finish in s, wave) in order of launch."""
        log = self.result().log
        columns = (log.job, log.stage, log.executor, log.start_ms / 1000.0, log.finish_ms / 1000.0, log.wave)
        return list(zip(*(column.tolist() for column in columns), strict=True))
