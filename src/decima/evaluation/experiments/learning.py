"""§7.4 and appendix C: curves of the training runs in ``models/training`` (Figure 15a, training report).

Nothing is trained here. ``models/training`` holds what the trainer wrote: ``runs.csv`` (a row per run), ``<run>.csv``
(its curve), ``references.csv`` (heuristics on the validation sequences) and ``ideas.csv`` (what else was tried). The
columns are those of ``RUN_COLUMNS`` and so on; ``models/training/README.md`` explains them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas

from decima.evaluation.experiments.store import Context, training_folder
from decima.exceptions import ConfigError
from decima.workload.sources import WorkloadSource

RUN_COLUMNS = (
    "run", "setting", "recipe", "variant", "seed", "iterations", "wall_s", "cpu_s", "cores", "stored_as",
    "test_greedy_s", "test_sampled_s", "note",
)  # fmt: skip
CURVE_COLUMNS = ("iteration", "wall_s", "cpu_s", "val_greedy", "val_sampled")
REFERENCE_COLUMNS = ("setting", "scheduler", "avg_jct_s")
IDEA_COLUMNS = ("idea", "setting", "change_percent", "low", "high", "kept", "note")
_TEXTS = ("run", "setting", "recipe", "variant", "stored_as", "note", "scheduler", "idea", "kept")


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``learning_runs``, ``learning_curves``, ``learning_budgets``, ``learning_references``, ``learning_ideas``.

    Only the settings that the run's policies come from.
    """
    folder = training_folder()
    settings = set(context.policies.values())
    runs = _read(folder / "runs.csv", RUN_COLUMNS)
    runs = runs[runs["setting"].isin(settings)]
    # The fast recipe has a form for batches and one for streams.
    runs = runs.assign(recipe=runs["recipe"].str.replace(r"^fast-(batch|stream)$", "fast", regex=True))
    references = _read(folder / "references.csv", REFERENCE_COLUMNS)
    references = references[references["setting"].isin(settings)]
    ideas = _read(folder / "ideas.csv", IDEA_COLUMNS)
    curves = pandas.concat([_curve(folder, run) for run in runs.itertuples()])
    return {
        "learning_runs": runs.reset_index(drop=True),
        "learning_curves": curves.reset_index(drop=True),
        "learning_budgets": budgets(curves, references, params["budgets_min"]),
        "learning_references": references.reset_index(drop=True),
        "learning_ideas": ideas[ideas["setting"].isin(settings)].reset_index(drop=True),
    }


def _read(path: Path, columns: tuple[str, ...]) -> pandas.DataFrame:
    if not path.is_file():
        raise ConfigError(f"{path} is missing; it belongs to the repository")
    table = pandas.read_csv(path, dtype=dict.fromkeys(_TEXTS, str))
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise ConfigError(f"{path} has no column {', '.join(missing)}; expected: {', '.join(columns)}")
    return table[list(columns)].fillna(dict.fromkeys(_TEXTS, "–"))


def _curve(folder: Path, run) -> pandas.DataFrame:
    curve = _read(folder / f"{run.run}.csv", CURVE_COLUMNS)
    curve = curve.dropna(subset=["val_greedy", "val_sampled"])
    if curve.empty or not curve["wall_s"].is_monotonic_increasing:
        raise ConfigError(f"{folder / run.run}.csv: expected rows with validation scores, wall_s ascending")
    about = {name: getattr(run, name) for name in ("run", "setting", "recipe", "variant", "seed")}
    return curve.assign(**about)


def best_so_far(curve: pandas.DataFrame) -> pandas.Series:
    """Validation score of the checkpoint that would be kept if training ended here: the best one, greedy or sampled."""
    return curve[["val_greedy", "val_sampled"]].min(axis=1).cummin()


def budgets(curves: pandas.DataFrame, references: pandas.DataFrame, minutes: list[float]) -> pandas.DataFrame:
    """What a run had reached after so many minutes of wall time.

    Args:
        curves: Of all runs.
        references: Average JCT of heuristics on the same validation sequences.
        minutes: Budgets.

    Returns:
        run, setting, recipe, variant, seed, budget_min, best_s, change_percent (against tuned weighted fair); a run
        that was shorter than a budget, or had no validation by then, has no row.
    """
    weighted = references[references["scheduler"] == "weighted_fair"].set_index("setting")["avg_jct_s"]
    about = ["run", "setting", "recipe", "variant", "seed"]
    rows = []
    for key, curve in curves.groupby(about, sort=False):
        curve = curve.sort_values("wall_s")
        best = best_so_far(curve).to_numpy()
        for budget in minutes:
            reached = int(np.searchsorted(curve["wall_s"], 60.0 * budget, side="right"))
            # The last validation may fall short of the budget by the time between two validations.
            if reached == 0 or curve["wall_s"].iloc[-1] < 54.0 * budget:
                continue
            change = 100.0 * (best[reached - 1] / weighted[key[1]] - 1.0)
            rows.append((*key, budget, best[reached - 1], change))
    return pandas.DataFrame(rows, columns=[*about, "budget_min", "best_s", "change_percent"])
