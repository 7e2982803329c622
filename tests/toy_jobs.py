"""Jobs whose every task takes a known time, so that runs can be followed by hand."""

import numpy as np

from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile, Stage


def stage(name, tasks, duration_s, *parents):
    """A stage whose tasks always take the same time; parents are indices."""
    wave = (np.array([1000.0 * duration_s]),)
    return Stage(name, tasks, parents, (5,), wave, wave, wave)


def job(*stages, at_s=0.0, name="job"):
    """A job of such stages; at 0 s it is there from the start."""
    return Job(JobProfile(name, stages, "test"), 1000.0 * at_s)


def one_stage(tasks, duration_s, at_s=0.0, name="job"):
    """A job of one stage."""
    return job(stage("a", tasks, duration_s), at_s=at_s, name=name)


def workload(*jobs):
    """Jobs as a workload."""
    return Workload(jobs, "test")
