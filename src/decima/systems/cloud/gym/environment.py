"""Gymnasium environment ``decima/VmPlacement-v0``: a learner puts executors on VMs one by one.

    import gymnasium

    env = gymnasium.make("decima.systems.cloud.gym:decima/VmPlacement-v0", workload="generated", beta=1.0)
    observation, info = env.reset(seed=0)
    action = env.action_space.sample(mask=info["action_mask"])
    observation, reward, terminated, truncated, info = env.step(action)

Source: Islam et al., TPDS 2022, section 4 and Table 3.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from decima.core.environment import GymScheduler, SchedulingEnv
from decima.core.errors import ConfigError, InvalidDecisionError
from decima.systems.cloud import engine as core
from decima.systems.cloud.catalog import make_cluster
from decima.systems.cloud.fields import COMPLETE, GOES_ON, STATUS_TEXTS
from decima.systems.cloud.gym import kernel
from decima.systems.cloud.result import PlacementResult
from decima.systems.cloud.settings import PlacementSettings
from decima.systems.cloud.sources import parse_placement_jobs
from decima.systems.cloud.state import check_action
from decima.systems.cloud.system import Episode
from decima.systems.cloud.workload import PlacementJob, PlacementWorkload

REWARDS = ("paper", "per_job")
OBSERVATIONS = ("paper", "full")
#: Columns of ``vms`` of the observation ``full``.
VM_COLUMNS = (
    "free_cores",
    "free_memory_gb",
    "cores",
    "memory_gb",
    "price_per_hour",
    "busy_left_s",  # until the last job that runs on it ends
    "executors_here",  # of the job that is shown
    "room",  # executors of that job that still fit
    "added_cost",  # what using the VM for the job's duration adds to the bill
)
#: Entries of ``job`` of the observation ``full``.
JOB_COLUMNS = (
    "cpu_bound",
    "memory_bound",
    "network_bound",
    "cores",
    "memory_gb",
    "executors",
    "executors_left",
    "duration_s",
    "waited_s",  # since its arrival
    "jobs_running",
    "jobs_left",  # with the one that is shown
)
_MOST = 1e15


class CloudGymScheduler(GymScheduler):
    """Scheduler that asks a policy of the environment; see :func:`decima.core.environment.as_scheduler`."""

    def run_episode(self, episode: Episode) -> None:
        """Play an episode that has begun to its end."""
        self.reset(episode.rng)
        self._env.play(episode, self.choose)


class VmPlacementEnv(SchedulingEnv):
    """Executor placement as a Gymnasium environment.

    Observation: ``action_mask`` (int8 [VMs + 1]) and, ``"paper"``: ``state``, free cores and GB of every VM, then id
    (or type), cores, GB and executors left of the job that is shown, then prices if asked for; ``"full"``: ``vms`` and
    ``job``, see :data:`VM_COLUMNS` and :data:`JOB_COLUMNS`.

    Action: 0 waits for the next completion, i puts one executor on VM i.

    Reward: ``"paper"``: Table 3, R_epi at the end. ``"per_job"``: minus what each job takes from R_epi (cost that it
    adds, and its run time) when it starts, else 0; over a complete episode this is R_epi less R_fixed times
    ``beta + (1 - beta) (1 + Avg_Tmin / (Avg_Tmax - Avg_Tmin))``. An action that ends the episode in failure has the
    reward of Table 3 in both.

    End: ``terminated`` when all jobs are placed, or an action breaks a rule.

    Info: ``action_mask``, ``clock_s``, ``job`` (id), ``status``; at the end ``cost``, ``mean_duration_s``,
    ``good_placements``, ``waits``, ``reward`` of a complete episode.

    Args:
        workload: Jobs, a text of :mod:`.sources` or a function ``seed -> workload`` (both are drawn anew
            for every episode). Generated jobs when omitted.
        settings: VMs, billing, beta, rules; made of ``mode`` and the other arguments when omitted.
        mode: ``"paper"`` or ``"released"``.
        cluster: Name of a list of VMs, path of a csv file, or VMs.
        observation: ``"paper"`` or ``"full"``.
        prices: Whether the observation ``paper`` has prices.
        job_id: What the observation ``paper`` has for the job: ``"id"`` or ``"type"``.
        reward: ``"paper"`` or ``"per_job"``.
        invalid_action: ``"end"``: what the rules say; ``"error"``: an action that is masked raises and changes nothing.
        render_mode: ``"ansi"``: ``render()`` returns a text.
        **changes: ``beta``, ``billing`` and fields of :class:`decima.systems.cloud.settings.Rules`.

    Raises:
        ConfigError: A parameter is out of range.
    """

    workload_type, scheduler_type = PlacementWorkload, CloudGymScheduler

    def __init__(
        self,
        workload: PlacementWorkload | str | Path | Callable[[int], PlacementWorkload] | None = None,
        *,
        settings: PlacementSettings | None = None,
        mode: str = "paper",
        cluster: Any = None,
        observation: str = "full",
        prices: bool = False,
        job_id: str = "id",
        reward: str = "paper",
        invalid_action: str = "end",
        render_mode: str | None = None,
        **changes: Any,
    ) -> None:
        super().__init__(
            "generated" if workload is None else workload,
            render_mode,
            observation=(observation, OBSERVATIONS),
            job_id=(job_id, ("id", "type")),
            reward=(reward, REWARDS),
            invalid_action=(invalid_action, ("end", "error")),
        )
        if settings is None:
            vms = None if cluster is None else make_cluster(cluster)
            try:
                settings = PlacementSettings.of_mode(mode, cluster=vms, **changes)
            except TypeError as error:
                raise ConfigError(f"unknown setting: {error}") from error
        elif changes or cluster is not None:
            raise ConfigError("settings are given together with cluster or single settings; expected one of them")
        self.settings = settings
        self._per_job, self._strict = reward == "per_job", invalid_action == "error"
        self._full, self._with_prices, self._with_id = observation == "full", prices, job_id == "id"
        self._price = _prices(settings)
        workload = self._workload_of(self._source, 0)
        self._show(workload, Episode.of(workload, settings))
        vms = len(settings.cluster)
        self.action_space = spaces.Discrete(vms + 1)
        parts: dict[str, spaces.Space] = {"action_mask": spaces.Box(0, 1, (vms + 1,), np.int8)}
        shapes = {"vms": (vms, len(VM_COLUMNS)), "job": (len(JOB_COLUMNS),)}
        if not self._full:
            shapes = {"state": (2 * vms + 4 + vms * prices,)}
        parts |= {name: spaces.Box(0.0, _MOST, shape, np.float64) for name, shape in shapes.items()}
        self.observation_space = spaces.Dict(parts)

    def read_text(self, text: str) -> PlacementWorkload | Callable[[int], PlacementWorkload]:
        """Jobs of a file or trace, or a function that draws them."""
        spec = parse_placement_jobs(text)
        return spec.workload if spec.drawn else spec.workload()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        """Begin an episode.

        Args:
            seed: Chooses the jobs where they are drawn; from ``np_random`` when omitted.
            options: ``{"workload": ...}`` replaces the workload for this episode.
        """
        workload = self._draw(seed, options)
        if workload is not self._workload:
            self._show(workload, Episode.of(workload, self.settings))
        core.begin(self._episode.state.address)
        self._begun = True
        return self._observe()

    def step(self, action: Any) -> tuple[dict, float, bool, bool, dict]:
        """Wait, or put one executor on a VM.

        Raises:
            ConfigError: The action is not a whole number from 0 to the number of VMs.
            InvalidDecisionError: The action is masked, with ``invalid_action="error"``.
            ResetNeeded: The episode is over.
        """
        state = self._episode.state
        if not self._begun or state.status != GOES_ON:
            raise ResetNeeded("the episode is over, or none has begun; call reset() before step()")
        action = check_action(state, action)
        if self._strict and not self._mask[action]:
            what = "waiting" if action == 0 else f"an executor on {self.settings.cluster.names[action - 1]}"
            raise InvalidDecisionError(
                f"action {action} is masked: {what} is not valid for job {self._job.id} at {state.now_s:g} s; "
                f"expected one of {np.flatnonzero(self._mask).tolist()}"
            )
        job = state.job
        reward = float(core.step(state.address, action))
        if self._per_job and state.status <= COMPLETE:
            started = state.status == COMPLETE or state.job > job
            reward = -self._loss(job) if started else 0.0
        observation, info = self._observe()
        return observation, reward, state.status != GOES_ON, False, info

    @property
    def _job(self) -> PlacementJob:
        return self._workload.jobs[self._episode.state.job]

    def _loss(self, job: int) -> float:
        losses = np.empty(len(self._workload))
        core.summary(self._episode.state.address, losses)
        return float(losses[job])

    def _show(self, workload: PlacementWorkload, episode: Episode) -> None:
        """Let the environment be about an episode."""
        self._workload, self._episode = workload, episode
        self._jobs = np.array([(job.id if self._with_id else job.type, job.memory_gb) for job in workload.jobs])

    def _observe(self) -> tuple[dict, dict]:
        """Observation and info of the state; after the last job no action is valid."""
        state = self._episode.state
        places = state.address, self._episode.other.address, self._jobs
        self._mask = mask = np.empty(len(self._price) + 1, dtype=np.int8)
        if self._full:
            job, vms = np.zeros(len(JOB_COLUMNS)), np.empty((len(self._price), len(VM_COLUMNS)))
            kernel.observe_full(*places, self._price, mask, job, vms)
            observation = {"action_mask": mask.copy(), "job": job, "vms": vms}
        else:
            row = np.empty(self.observation_space["state"].shape)
            kernel.observe_paper(*places, mask, row)
            if self._with_prices:
                row[-len(self._price) :] = self._price
            observation = {"action_mask": mask.copy(), "state": row}
        info = {
            "action_mask": mask.copy(),
            "clock_s": state.now_s,
            "job": self._job.id,
            "status": STATUS_TEXTS[state.status],
        }
        if state.status == COMPLETE:
            result = self.result()
            names = ("cost", "mean_duration_s", "good_placements", "waits", "reward")
            info |= {name: getattr(result, name) for name in names}
        return observation, info

    def result(self) -> PlacementResult:
        """Outcome of the episode so far."""
        self._require_begun("result")
        state = self._episode.state
        return PlacementResult.of_state(state, self._workload, self.settings, "environment", self._seed)

    def play(self, episode: Episode, choose: Callable[[dict], Any]) -> None:
        """Play an episode that has begun elsewhere to its end.

        Args:
            episode: Memory of the episode.
            choose: Function of an observation that returns an action.

        Raises:
            ConfigError: The episode has another number of VMs.
            InvalidDecisionError: An action is masked.
        """
        if (vms := len(episode.settings.cluster)) != len(self.settings.cluster):
            raise ConfigError(f"the cluster has {vms} VMs; expected {len(self.settings.cluster)} as in the environment")
        self._show(episode.workload, episode)
        self._begun = self._strict = True
        self.settings, self._price = episode.settings, _prices(episode.settings)
        observation, _ = self._observe()
        while episode.state.status == GOES_ON:
            observation, *_ = self.step(choose(observation))

    def describe(self) -> str:
        """Clock, job and VMs as a text of a few lines."""
        state, job = self._episode.state, self._job
        lines = [
            f"{state.now_s:.1f} s: {state.running} jobs run, cost {state.cost:.4f} {self.settings.cluster.currency}",
            f"job {job.id}, type {job.type}: {state.placed} of {job.executors} executors placed, "
            f"{job.cores} cores and {job.memory_gb:g} GB each, {job.duration_s:g} s",
        ]
        for vm, name in enumerate(self.settings.cluster.names):
            used = int(state.vm_cores[vm] - state.free_cores[vm])
            lines.append(f"{vm + 1:>3} {name:<16} {used:>3} of {state.vm_cores[vm]} cores in use")
        return "\n".join(lines)


def _prices(settings: PlacementSettings) -> np.ndarray:
    """Prices per hour, float64 [VMs]."""
    return np.array([vm.price_per_hour for vm in settings.cluster.vms])
