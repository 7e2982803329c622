"""The paper's grid of placement policies: both algorithms, five weights of cost, two patterns, three seeds, no mask.

Run from the checkout, after ``decima data fetch cloud-vm``: ``python -m benchmarks.cloud_grid --share 0.25 1``. Writes
``models/training/cloud_grid.csv`` after every run. The shares are parts of the 10,000 iterations (normal arrivals) and
20,000 (burst) of Islam et al.: all runs are taken to the first one, then to the next. What is done is kept in
``--folder``, and runs in the table are not done again, so the command may be stopped and given again at any time. Since
rates do not depend on the budget, a run taken to a quarter and then to the end is the same as one without a stop.
"""

import argparse
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pandas

from decima.learning.checkpoint import FILE_NAME
from decima.learning.logs import CURVE_NAME
from decima.learning.quiet import import_tensorflow
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.policy.task import PlacementTask

TABLE = Path(__file__).parents[1] / "models" / "training" / "cloud_grid.csv"
ITERATIONS = {"normal": 10_000, "burst": 20_000}
LEARNERS = {"paper_dqn": "paper-dqn", "paper_reinforce": "paper"}
# The ends of the range and its middle come first, so that what is finished is balanced.
BETAS = ((1.0, 0.0, 0.5), (0.25, 0.75))
POINTS = 40  # validations of a whole run
CHECKPOINT_EVERY = 2500  # iterations
DECISIONS = 10  # that DQN makes per iteration
NAMES = ("learner", "pattern", "beta", "seed")  # columns that say which run


@dataclass(frozen=True)
class Cell:
    """One run of the grid."""

    learner: str
    pattern: str
    beta: float
    seed: int

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{LEARNERS[self.learner]}-{self.pattern}-{self.beta:g}-{self.seed}"

    def train(self, folder: Path, iterations: int) -> float:
        """Take the run to so many iterations; returns what ``ilp_beta`` loses of R_epi, plus 1 %, as a share."""
        from decima.learning.recipe import Recipe
        from decima.systems.cloud.policy.run import PlacementRun

        recipe = Recipe.named(
            LEARNERS[self.learner],
            "placement",
            iterations=iterations,
            validate_every=ITERATIONS[self.pattern] // POINTS,
            checkpoint_every=CHECKPOINT_EVERY,
        )
        task = PlacementTask((self.pattern,), betas=(self.beta,), reward="table3")
        network = PlacementArchitecture.named("paper", len(task.settings[0].cluster))
        trainer = PlacementRun(task, recipe, network, self.seed).trainer(
            folder, backend="threads", workers=1, tensorboard=False
        )
        trainer.train(resume=(folder / FILE_NAME).exists())
        return trainer.validation.reference_loss


def cells(seeds: int) -> Iterator[Cell]:
    """All runs, the most telling weights of cost first."""
    for betas in BETAS:
        for seed, beta, pattern, learner in product(range(seeds), betas, ITERATIONS, LEARNERS):
            yield Cell(learner, pattern, beta, seed)


def points(cell: Cell, folder: Path, reference_loss: float) -> pandas.DataFrame:
    """Validations of a run, with means over the training episodes that ended since the one before.

    Args:
        cell: The run.
        folder: Where its curve is.
        reference_loss: As :meth:`Cell.train` returns it.
    """
    from decima.systems.cloud.policy.run import FLOOR

    curve = pandas.read_csv(folder / CURVE_NAME)
    number = curve["val_greedy"].notna()[::-1].cumsum()[::-1]  # of the validation that a row comes before, from the end
    ended = curve[["steps", "complete"]].groupby(number).mean()
    made = pandas.Series(DECISIONS, curve.index) if cell.learner == "paper_dqn" else curve["decisions"]
    curve["decisions_seen"] = made.cumsum()
    rows = curve[curve["val_greedy"].notna()]
    reached = 100.0 * (1.0 + FLOOR - rows["val_greedy"] * reference_loss)
    return pandas.DataFrame(
        {
            "learner": cell.learner,
            "pattern": cell.pattern,
            "beta": cell.beta,
            "seed": cell.seed,
            "iteration": rows["iteration"] + 1,
            "cpu_s": rows["cpu_s"].round(2),
            "decisions_seen": rows["decisions_seen"].astype(int),
            "reached": reached.where(rows["val_duration_s"].notna(), 0.0).round(3),
            "steps": number[rows.index].map(ended["steps"]).round(2),
            "complete": number[rows.index].map(ended["complete"]).round(4),
        }
    )


def kept() -> pandas.DataFrame:
    """The table as it is."""
    return pandas.read_csv(TABLE) if TABLE.exists() else pandas.DataFrame(columns=[*NAMES, "iteration"])


def of_cell(table: pandas.DataFrame, cell: Cell) -> pandas.Series:
    """Which rows are of a run, bool."""
    return (table[list(NAMES)] == [cell.learner, cell.pattern, cell.beta, cell.seed]).all(axis=1)


def keep(cell: Cell, found: pandas.DataFrame) -> None:
    """Put the points of a run into the table, in place of earlier ones of the same run."""
    table = kept()
    table = pandas.concat([part for part in (table[~of_cell(table, cell)], found) if len(part)])
    table.sort_values([*NAMES, "iteration"]).to_csv(TABLE, index=False, lineterminator="\n")


def main() -> None:
    """Train what is missing and write the table after every run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, nargs="+", default=[1.0], help="parts of the iterations, ascending")
    parser.add_argument("--seeds", type=int, default=3, help="runs per algorithm, weight of cost and pattern")
    parser.add_argument("--folder", type=Path, default=Path("runs/cloud-grid"), help="where runs are kept")
    options = parser.parse_args()
    import_tensorflow()
    for share in options.share:
        for cell in cells(options.seeds):
            iterations = round(share * ITERATIONS[cell.pattern])
            folder = options.folder / cell.name
            table = kept()
            if (table[of_cell(table, cell)]["iteration"] >= iterations).any():
                continue
            keep(cell, points(cell, folder, cell.train(folder, iterations)))
            print(f"{cell.name}: {iterations} iterations", flush=True)
            gc.collect()  # a network's graphs refer to each other


if __name__ == "__main__":
    main()
