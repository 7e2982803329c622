"""The paper's grid of placement policies: both algorithms, five weights of cost, two patterns, inputs, mask, seeds.

Run from the checkout, after ``decima data fetch cloud-vm``: ``python -m benchmarks.cloud_grid --share 0.25 1``. Writes
``models/training/cloud_grid.csv`` and ``cloud_agents.csv`` after every run: its validations, and what its policy does
with the trace that it is trained on.

The shares are parts of the 10,000 iterations (normal arrivals) and 20,000 (burst)
of Islam et al.: all runs are taken to the first one, then to the next. What is done is kept in
``--folder``, and runs in the table are not done again, so the command may be stopped and given again at any time. Since
rates do not depend on the budget, a run taken to a quarter and then to the end is the same as one without a stop.
"""

import argparse
import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pandas

from decima.learning.logs import CURVE_NAME
from decima.learning.quiet import import_tensorflow
from decima.learning.trainer import FILE_NAME
from decima.systems.cloud import simulate
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.policy.scheduler import LearnedPlacement
from decima.systems.cloud.policy.task import PlacementTask

TRAINING = Path(__file__).parents[1] / "models" / "training"
GRID, AGENTS = "cloud_grid.csv", "cloud_agents.csv"
ITERATIONS = {"normal": 10_000, "burst": 20_000}
LEARNERS = {"paper_dqn": "paper-dqn", "paper_reinforce": "paper"}
# What the paper leaves open: units of the inputs, and a mask. With scaled inputs, returns are centred, as in its code,
# and the rewards of DQN are in units of that for an invalid action, without which it does not learn.
VARIANTS = {"raw": {}, "scaled": {"scaled": True}, "scaled_mask": {"scaled": True, "masked": True}}
# Variants under other rules: the clock of the published code; rewards of waiting with which section 7.7 says that an
# agent waits for ever, also where a wait while nothing runs does not end the episode (until 1,000 waits).
RULES = {
    "scaled_mask_clock": ("scaled_mask", {"clock_goes_back": True}),
    "scaled_wait_0": ("scaled", {"wait_reward": 0.0}),
    "scaled_wait_1": ("scaled", {"wait_reward": 1.0}),
    "scaled_idle_0": ("scaled", {"wait_reward": 0.0, "idle_waits": 1000}),
    "scaled_idle_1": ("scaled", {"wait_reward": 1.0, "idle_waits": 1000}),
}
UNDISCOUNTED = "scaled_mask_undiscounted"  # REINFORCE with a mask and without Table 5's discount of 0.9 per step
CHANGES = {"paper_dqn": {"reward_scale": 200.0}, "paper_reinforce": {"normalise": "centred"}}  # with scaled inputs
SAMPLED = 100  # runs of a policy that is not greedy
# The ends of the range and its middle come first, so that what is finished is balanced.
BETAS = ((1.0, 0.0, 0.5), (0.25, 0.75))
POINTS = 40  # validations of a whole run
CHECKPOINT_EVERY = 1000  # iterations
DECISIONS = 10  # that DQN makes per iteration
NAMES = ("learner", "variant", "pattern", "beta", "seed")  # columns that say which run


@dataclass(frozen=True)
class Cell:
    """One run of the grid."""

    learner: str
    variant: str
    pattern: str
    beta: float
    seed: int

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{LEARNERS[self.learner]}-{self.variant}-{self.pattern}-{self.beta:g}-{self.seed}"

    def train(self, folder: Path, iterations: int, tables: Path) -> None:
        """Take the run to a number of iterations and write what was found into both tables of a folder."""
        from decima.learning.recipe import Recipe
        from decima.systems.cloud.policy.run import PlacementRun

        recipe = Recipe.named(
            LEARNERS[self.learner],
            "placement",
            iterations=iterations,
            validate_every=ITERATIONS[self.pattern] // POINTS,
            checkpoint_every=CHECKPOINT_EVERY,
            **({} if self.variant == "raw" else CHANGES[self.learner]),
            **({"horizon_s": None} if self.variant == UNDISCOUNTED else {}),
        )
        variant, rules = RULES.get(self.variant, (self.variant.removesuffix("_undiscounted"), {}))
        task = PlacementTask((self.pattern,), betas=(self.beta,), reward="table3", rules=rules)
        network = PlacementArchitecture.named("paper", len(task.settings[0].cluster), **VARIANTS[variant])
        trainer = PlacementRun(task, recipe, network, self.seed).trainer(
            folder, backend="threads", workers=1, tensorboard=False
        )
        trained = trainer.train(resume=(folder / FILE_NAME).exists())
        keep(tables / GRID, self, points(self, folder, trainer.validation.reference_loss))
        acting = {"greedy": (1, trained.iteration, LearnedPlacement(network, trained.weights))}
        if self.learner == "paper_reinforce":
            last = LearnedPlacement(network, trainer.algorithm.weights, greedy=False)
            acting["sampled"] = SAMPLED, trained.iterations, last
        rows = [self.measured(task, acts, *policy) for acts, policy in acting.items()]
        keep(tables / AGENTS, self, pandas.DataFrame(rows))

    def about(self) -> dict:
        """Columns that show the run."""
        return {name: getattr(self, name) for name in NAMES}

    def measured(self, task: PlacementTask, acts: str, runs: int, iteration: int, policy: LearnedPlacement) -> dict:
        """Share of runs that place all jobs of the trace, and means over these."""
        sequence = task.validation_sequences(1)[0]
        results = [simulate(task.workload(sequence), policy, task.settings_of(sequence), seed) for seed in range(runs)]
        whole = pandas.DataFrame(
            {
                "cost": result.cost,
                "duration_s": result.mean_duration_s,
                "response_s": result.response_s,
                "good": result.good_placements,
                "waits": result.waits,
                "reward": result.reward,
            }
            for result in results
            if result.complete
        )
        means = whole.mean().round(4) if len(whole) else {}
        return self.about() | {"acts": acts, "iteration": iteration, "complete": len(whole) / runs} | dict(means)


def cells(seeds: int, variants: Sequence[str], patterns: Sequence[str], learners: Sequence[str]) -> Iterator[Cell]:
    """All runs, the most telling weights of cost first."""
    for betas in BETAS:
        for seed, variant, beta, pattern, learner in product(range(seeds), variants, betas, patterns, learners):
            yield Cell(learner, variant, pattern, beta, seed)


def points(cell: Cell, folder: Path, reference_loss: float) -> pandas.DataFrame:
    """Validations of a run, with means over the training episodes that ended since the one before.

    Args:
        cell: The run.
        folder: Where its curve is.
        reference_loss: What ``ilp_beta`` loses of R_epi, plus 1 %, as a share.
    """
    from decima.systems.cloud.policy.run import FLOOR

    curve = pandas.read_csv(folder / CURVE_NAME)
    number = curve["val_greedy"].notna()[::-1].cumsum()[::-1]  # of the validation that a row comes before, from the end
    ended = curve[["steps", "complete", "reward", "cost", "duration_s"]].groupby(number).mean()
    made = pandas.Series(DECISIONS, curve.index) if cell.learner == "paper_dqn" else curve["decisions"]
    curve["decisions_seen"] = made.cumsum()
    rows = curve[curve["val_greedy"].notna()]
    reached = 100.0 * (1.0 + FLOOR - rows["val_greedy"] * reference_loss)
    return pandas.DataFrame(
        cell.about()
        | {
            "iteration": rows["iteration"] + 1,
            "cpu_s": rows["cpu_s"].round(2),
            "decisions_seen": rows["decisions_seen"].astype(int),
            "reached": reached.where(rows["val_duration_s"].notna(), 0.0).round(3),
        }
        | {name: number[rows.index].map(ended[name]).round(4) for name in ended}
    )


def kept(path: Path) -> pandas.DataFrame:
    """A table as it is."""
    return pandas.read_csv(path) if path.exists() else pandas.DataFrame(columns=[*NAMES, "iteration"])


def of_cell(table: pandas.DataFrame, cell: Cell) -> pandas.Series:
    """Which rows are of a run, bool."""
    return (table[list(NAMES)] == list(cell.about().values())).all(axis=1)


def keep(path: Path, cell: Cell, found: pandas.DataFrame) -> None:
    """Put the rows of a run into a table, in place of earlier ones of the same run."""
    table = kept(path)
    table = pandas.concat([part for part in (table[~of_cell(table, cell)], found) if len(part)])
    table.sort_values([*NAMES, "iteration"]).to_csv(path, index=False, lineterminator="\n")


def main() -> None:
    """Train what is missing and write the tables after every run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, nargs="+", default=[1.0], help="parts of the iterations, ascending")
    parser.add_argument("--seeds", type=int, default=3, help="runs per algorithm, weight of cost and pattern")
    parser.add_argument(
        "--variant", choices=[*VARIANTS, *RULES, UNDISCOUNTED], nargs="+", default=list(VARIANTS), help="what differs"
    )
    parser.add_argument("--beta", type=float, nargs="+", default=[0.0, 0.25, 0.5, 0.75, 1.0], help="weights of cost")
    parser.add_argument("--learner", choices=LEARNERS, nargs="+", default=list(LEARNERS), help="algorithms")
    parser.add_argument("--pattern", choices=ITERATIONS, nargs="+", default=list(ITERATIONS), help="arrivals")
    parser.add_argument("--folder", type=Path, default=Path("runs/cloud-grid"), help="where runs are kept")
    parser.add_argument("--tables", type=Path, default=TRAINING, help="where both tables are written")
    options = parser.parse_args()
    import_tensorflow()
    for share in options.share:
        for cell in cells(options.seeds, options.variant, options.pattern, options.learner):
            iterations = round(share * ITERATIONS[cell.pattern])
            table = kept(options.tables / GRID)
            if cell.beta not in options.beta or (table[of_cell(table, cell)]["iteration"] >= iterations).any():
                continue
            cell.train(options.folder / cell.name, iterations, options.tables)
            print(f"{cell.name}: {iterations} iterations", flush=True)
            gc.collect()  # a network's graphs refer to each other


if __name__ == "__main__":
    main()
