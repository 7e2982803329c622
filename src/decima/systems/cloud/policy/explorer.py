"""The ongoing episode of value learning: a few decisions per iteration, one trace after the other."""

from __future__ import annotations

import numpy as np

from decima.learning.replay import Transitions
from decima.systems.cloud.fields import GOES_ON
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.policy.episodes import numbers_of
from decima.systems.cloud.policy.scheduler import LearnedPlacement, PlacementRecord, collect_record, give_actions, play
from decima.systems.cloud.policy.task import PlacementSequence, PlacementTask
from decima.systems.cloud.state import give_chance
from decima.systems.cloud.system import Episode


class Explorer:
    """An episode that goes on from iteration to iteration; the next trace begins where one ends.

    Args:
        task: What to draw traces of.
        architecture: Shape of the network, whose outputs are values of actions.
        seed: Of the run; traces and chance are functions of it.
    """

    def __init__(self, task: PlacementTask, architecture: PlacementArchitecture, seed: int) -> None:
        self._task, self._architecture, self._seed = task, architecture, seed
        self._episode: Episode | None = None
        self._sequence: PlacementSequence | None = None  # that its memory is made for
        self._number = -1  # of the present episode
        self._before = 0.0  # rewards of the episode before the memory was made anew

    def state(self) -> tuple[dict[str, np.ndarray], dict]:
        """Number of the episode and the actions taken in it; these are all that it depends on."""
        actions = np.zeros(0, np.int64)
        if self._episode is not None:
            actions = self._episode.state.action[: self._episode.state.steps].copy()
        return {"actions": actions}, {"episode": self._number, "before": self._before}

    def restore(self, arrays: dict[str, np.ndarray], counters: dict, weights: np.ndarray) -> None:
        """Repeat the actions."""
        self._episode, self._number = None, counters["episode"]
        if self._number < 0:
            return
        self._begin(self._number)
        memory = self._memory
        give_actions(memory, arrays["actions"])
        memory.configure(limit=0)
        play(self._episode.state, self._episode.other, memory)
        give_actions(memory, [])
        self._before = counters["before"]
        memory.configure(total=0.0)

    def _begin(self, number: int) -> None:
        sequence = self._task.training_sequences(self._seed, number, 1)[0]
        self._number, self._before = number, 0.0
        if self._episode is not None and sequence == self._sequence:
            self._episode.start(0)
            self._memory.configure(total=0.0)
            return
        self._sequence = sequence
        self._episode = Episode.of(self._task.workload(sequence), self._task.settings_of(sequence))
        self._episode.start(0)
        made = LearnedPlacement(self._architecture, self._architecture.initial_weights(0))
        self._memory = made.memory(self._episode.state, record=True)
        self._memory.configure(per_job=self._task.reward == "per_job")

    def go_on(
        self, weights: np.ndarray, iteration: int, steps: int, epsilon: float
    ) -> tuple[Transitions, list[PlacementRecord]]:
        """Make ``steps`` decisions, eps-greedy.

        Args:
            weights: Float32 [parameters].
            iteration: Chance is a function of it.
            steps: Decisions to make.
            epsilon: Probability of a random action.

        Returns:
            The transitions, and records of what the episodes that ended did since the iteration began.
        """
        rng = np.random.default_rng([self._seed, iteration, 3])
        parts, ended, left = [], [], steps
        while left > 0:
            if self._episode is None or self._episode.state.status != GOES_ON:
                self._begin(self._number + 1)
            state, memory = self._episode.state, self._memory
            give_chance(state, rng)
            memory.bind("weights", weights, copy=False)
            memory.configure(limit=left, explore=epsilon, greedy=True)
            play(state, self._episode.other, memory)
            parts.append(self._transitions())
            left -= memory.decisions
            if state.status != GOES_ON:
                memory.configure(total=memory.total + self._before)
                ended.append(collect_record(state, memory, numbers_of(self._episode)))
            else:
                self._before += memory.total
                memory.configure(total=0.0)
        self._held = rng  # the state has its address
        return Transitions.joined([part for part in parts if len(part)]), ended

    def _transitions(self) -> Transitions:
        """What the memory recorded: every decision with the one after it."""
        state, memory, shape = self._episode.state, self._memory, self._architecture
        count, actions, width = memory.decisions, state.num_vms + 1, shape.inputs
        over = state.status != GOES_ON
        vector = shape.form == "vector"
        seen = count if over else count + 1  # the inputs of the one that is to be made now, too
        first, action = memory.rec_first, memory.rec_action
        counts = np.diff(first[: seen + 1]) if seen else np.zeros(0, np.int64)
        row = np.repeat(np.arange(seen), counts)
        place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        mask = np.zeros((count + 1, actions), bool)
        if vector:
            x = np.zeros((count + 1, width), np.float32)
            x[:seen] = memory.rec_x[: seen * width].reshape(seen, width)
            mask[row, action[: len(row)]] = True
        else:
            x = np.zeros((count + 1, actions, width), np.float32)
            x[row, place] = memory.rec_x[: len(row) * width].reshape(-1, width)
            x = x.reshape(count + 1, actions * width)
            mask[row, place] = True
        chosen = memory.rec_chosen[:count].copy()
        if vector:
            chosen = action[first[:count] + chosen]
        step = np.append(memory.rec_step[:count], state.steps)
        done = np.zeros(count, bool)
        if over and count:
            done[-1] = True
        return Transitions(
            {
                "x": x[:count],
                "action": chosen.astype(np.int32),
                "reward": memory.rec_reward[:count].copy(),
                "next_x": x[1:],
                "next_mask": mask[1:],
                "steps": np.diff(step).astype(np.int32),
                "done": done,
            }
        )
