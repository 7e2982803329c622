"""Episodes on the machines of a Ray cluster; needs the extra ``ray``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from decima.exceptions import ConfigError
from decima.policy.architecture import Architecture
from decima.training.rollout import RolloutJob, check_workers, run_in_worker
from decima.training.task import Task

if TYPE_CHECKING:
    from decima.policy.record import EpisodeRecord


class _Worker:
    """Body of a Ray actor."""

    def run(self, task: dict, architecture: Architecture, weights: np.ndarray, job: RolloutJob) -> EpisodeRecord:
        """One episode."""
        return run_in_worker((task, architecture, weights, job))


class RayBackend:
    """One actor per worker. Joins the cluster named by ``RAY_ADDRESS``, else starts Ray on this machine.

    Args:
        task: What to draw sequences of.
        workers: Actors, one core each; all cores of this machine by default.

    Raises:
        ConfigError: Ray is not installed.
    """

    def __init__(self, task: Task, workers: int | None = None) -> None:
        try:
            import ray
        except ImportError as error:
            raise ConfigError("backend 'ray' needs Ray: pip install 'decima-sched[ray]'") from error
        self.workers = check_workers(workers)
        self._ray = ray
        self._task = task.as_dict()
        self._started = not ray.is_initialized()
        if self._started:
            ray.init(include_dashboard=False, log_to_driver=False)
        actor = ray.remote(num_cpus=1)(_Worker)
        self._actors = [actor.remote() for _ in range(self.workers)]

    def collect(
        self, architecture: Architecture, weights: np.ndarray, jobs: Sequence[RolloutJob]
    ) -> list[EpisodeRecord]:
        """Run the jobs; see :class:`decima.training.rollout.RolloutBackend`."""
        shared = self._ray.put(weights)
        pool = self._ray.util.ActorPool(self._actors)
        work = [(self._task, architecture, shared, job) for job in jobs]
        return list(pool.map(lambda actor, item: actor.run.remote(*item), work))

    def close(self) -> None:
        """End the actors, and Ray if it was started here."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []
        if self._started:
            self._ray.shutdown()
