"""§7.4 and appendix C: curves of the training runs in ``models/training`` (Figure 15a, training report).

Nothing is trained here. ``models/training`` holds what the trainer wrote: ``runs.csv`` (a row per run), ``<run>.csv``
(its curve), ``references.csv`` (heuristics on the validation sequences) and ``ideas.csv`` (what else was tried). The
columns are those of ``RUN_COLUMNS`` and so on; ``models/training/README.md`` explains them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas

from decima import plotting
from decima.core.errors import ConfigError
from decima.learning.cards import WARM
from decima.plotting.words import count
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables
from experiments.comparisons import ROWS
from experiments.experiment import Context, Experiment, Files, PoliciesIn
from experiments.rooms import POLICY_ROOMS
from experiments.training_files import check_whole_curve, read_training_file, training_folder

if TYPE_CHECKING:
    from decima.plotting.style import Figure

RUN_COLUMNS = (
    "run", "setting", "recipe", "variant", "seed", "iterations", "wall_s", "cpu_s", "cores", "stored_as",
    "test_greedy_s", "test_sampled_s", "note",
)  # fmt: skip
CURVE_COLUMNS = ("iteration", "wall_s", "cpu_s", "val_greedy", "val_sampled")
REFERENCE_COLUMNS = ("setting", "scheduler", "avg_jct_s")
PART_COLUMNS = ("part", "iterations", "seed", "cpu_s", "avg_jct_s", "largest_s")
IDEA_COLUMNS = ("idea", "setting", "change_percent", "low", "high", "kept", "note")
# Setting of ``runs.csv`` and ``references.csv``: encodings of the limit, trained from random weights (Figure 15a).
ENCODINGS = "busy-random"
# Variant of ``runs.csv``: the recipe with executor-entry features and with an output per limit.
ENTRY = "entry costs seen"
ALGORITHM_1 = "Algorithm 1 (REINFORCE)"  # as figures call what the recipe of the paper trains
SETTINGS = ("batch", "stream", "entry_stream", "warm_batch", "warm_stream", "warm_curve", "released")
_TEXTS = ("run", "setting", "recipe", "variant", "stored_as", "note", "scheduler", "idea", "kept", "part")
#: Heuristics that are drawn beside curves.
LEVELS = ("fair", "weighted_fair_arrival", "weighted_fair", "capped_srw")


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``learning_runs``, ``learning_curves``, ``learning_budgets``, ``learning_references``, ``learning_ideas``.

    Only the settings that the run's policies come from. ``learning_encodings`` and ``learning_encoding_references``
    are curves and heuristics of another one: three encodings of the limit. ``learning_parts``: continuing learning
    without one of its parts.
    """
    settings = {context.policies[use] for use in SETTINGS}
    runs = _read("runs.csv", RUN_COLUMNS)
    encodings = [_curve(run) for run in runs[runs["setting"] == ENCODINGS].itertuples()]
    runs = runs[runs["setting"].isin(settings)]
    # The fast recipe has a form for batches and one for streams.
    runs = runs.assign(recipe=runs["recipe"].str.replace(r"^fast-(batch|stream)$", "fast", regex=True))
    references = _read("references.csv", REFERENCE_COLUMNS)
    of_encodings = references[references["setting"] == ENCODINGS]
    references = references[references["setting"].isin(settings)]
    ideas = _read("ideas.csv", IDEA_COLUMNS)
    curves = pandas.concat([_curve(run) for run in runs.itertuples()])
    return {
        "learning_runs": runs.reset_index(drop=True),
        "learning_curves": curves.reset_index(drop=True),
        "learning_budgets": budgets(curves, references, params["budgets_min"]),
        "learning_references": references.reset_index(drop=True),
        "learning_encodings": pandas.concat(encodings).reset_index(drop=True),
        "learning_encoding_references": of_encodings.reset_index(drop=True),
        "learning_parts": changes_of_parts(_read("continuing.csv", PART_COLUMNS)),
        "learning_ideas": ideas[ideas["setting"].isin(settings)].reset_index(drop=True),
    }


def _read(name: str, columns: tuple[str, ...]) -> pandas.DataFrame:
    return read_training_file(name, columns, _TEXTS).fillna(dict.fromkeys(_TEXTS, "–"))


def _curve(run) -> pandas.DataFrame:
    name = f"{run.run}.csv"
    curve = _read(name, CURVE_COLUMNS)
    curve = curve.dropna(subset=["val_greedy", "val_sampled"])
    if curve.empty or not curve["wall_s"].is_monotonic_increasing:
        raise ConfigError(f"{training_folder() / name}: expected rows with validation scores, wall_s ascending")
    check_whole_curve(curve, name, run.iterations)
    about = {name: getattr(run, name) for name in ("run", "setting", "recipe", "variant", "seed")}
    return curve.assign(**about)


def best_so_far(curve: pandas.DataFrame) -> pandas.Series:
    """Best validation score so far, greedy or sampled, of the checkpoint that would be kept."""
    return curve[["val_greedy", "val_sampled"]].min(axis=1).cummin()


def budgets(curves: pandas.DataFrame, references: pandas.DataFrame, minutes: list[float]) -> pandas.DataFrame:
    """Table of each run's score after some minutes of wall time.

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


def changes_of_parts(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Changes by training, in percent.

    Args:
        scores: A row per heuristic and per training, see ``models/training/README.md``.

    Returns:
        part, iterations, seed, cpu_s, avg_jct_s, change_percent (against tuned weighted fair), and of the average JCT
        of capped SRW what the nine smaller tenths of the jobs and the largest one change: smaller_percent,
        largest_percent.
    """
    known = scores.set_index("part")
    fair_s, capped_s = (known.loc[name, "avg_jct_s"] for name in ("weighted fair", "capped SRW"))
    trained = scores[scores["seed"].notna()]
    largest = 100.0 * (trained["largest_s"] - known.loc["capped SRW", "largest_s"]) / capped_s
    return trained.drop(columns="largest_s").assign(
        seed=trained["seed"].astype(int),
        change_percent=100.0 * (trained["avg_jct_s"] / fair_s - 1.0),
        smaller_percent=100.0 * (trained["avg_jct_s"] / capped_s - 1.0) - largest,
        largest_percent=largest,
    )


def continuing_parts(tables: Tables, run: Run) -> Figure:
    """Continuing learning without one of its parts, and which jobs gain."""
    parts = tables["learning_parts"]
    parts = parts.assign(part=parts["part"] + np.where(parts["iterations"] > 150, ", longer", ""))
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.8)
    grid = figure.subplots(1, 3, sharey=True)
    labels = {
        "change_percent": ("(a) all jobs", "tuned weighted fair"),
        "smaller_percent": ("(b) smaller 90 %", "capped SRW"),
        "largest_percent": ("(c) largest 10 %", "capped SRW"),
    }
    for axes, (value, (title, against)) in zip(grid, labels.items(), strict=True):
        plotting.learning.part_points(parts, value, 25.0, axes)
        axes.set_title(title, loc="left")
        axes.set_xlabel(f"change against\n{against} (%)")
    caption = (
        "Ten streams of 1,000 jobs, one every 14 s, seen by no training; a point per seed, a line at their mean. "
        "(b) and (c) are in percent of the average JCT of all jobs; tenths are of the work of a job."
    )
    return plotting.style.entitle(figure, "Continuing learning without one of its parts", caption, "TPC-H")


def fig15a_curve(tables: Tables, run: Run) -> Figure:
    """Figure 15a: learning on continuous arrivals."""
    setting = run.policies["stream"]
    curves, references = (_setting(tables[name], setting) for name in ("learning_curves", "learning_references"))
    curves = curves[curves["variant"].isin(["recipe", "limit as output", "limit per stage"])]
    curves = curves[curves["recipe"] == _stored_recipe(tables, setting)]
    figure = plotting.learning.learning_curves(curves, references, levels=LEVELS).figure
    caption = f"Setting {setting}; {_seeds(curves)}; validation sequences that are neither trained nor tested on."
    return plotting.style.entitle(figure, "Figure 15a: learning curve, continuous arrivals", caption, run.workload)


def fig15a_encodings(tables: Tables, run: Run) -> Figure:
    """Figure 15a: three encodings of the limit from scratch, on 14 s streams."""
    curves = tables["learning_encodings"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.8)
    axes = figure.subplots()
    greedy = [plotting.learning.GREEDY]
    plotting.learning.learning_curves(
        curves, tables["learning_encoding_references"], axes, values=greedy, levels=LEVELS
    )
    axes.set_ylim(top=1.03 * curves[greedy].to_numpy().max())  # all of the way from random weights
    caption = f"Greedy policy on validation sequences; {_seeds(curves)}; Decima: the limit as an input (§5.2)."
    return plotting.style.entitle(figure, "Figure 15a: encodings of the limit, trained from scratch", caption, "TPC-H")


def from_random_weights(tables: Tables, run: Run) -> Figure:
    """How Decima learns: validation score over CPU time, a line per seed and score."""
    curves, references = tables["learning_curves"], tables["learning_references"]
    curves = curves[curves["variant"].isin(["recipe", ENTRY])]
    settings = [use for use in _alone(run) if use in set(curves["setting"])]
    figure = plotting.style.new_figure(plotting.style.PAGE, 0.9 + 2.4 * len(settings))
    grid = figure.subplots(len(settings), 1, squeeze=False)[:, 0]
    for axes, setting, letter in zip(grid, settings, "abcd", strict=False):
        how = {"over": "cpu_s", "levels": LEVELS, "legend": setting == settings[0]}
        plotting.learning.learning_curves(_setting(curves, setting), _setting(references, setting), axes, **how)
        axes.set_title(f"({letter}) {_arrivals(setting)}", loc="left")
    caption = f"PPO, no teacher; {_seeds(curves[curves['setting'].isin(settings)])}; heuristics on the same sequences."
    return plotting.style.entitle(figure, "Training Decima from scratch", caption, run.workload)


def alone_ingredients(tables: Tables, run: Run) -> Figure:
    """How Decima learns with a part of the recipe changed, and by Algorithm 1."""
    setting = run.policies["batch"]
    curves = _setting(tables["learning_curves"], setting)
    curves = pandas.concat([rows.assign(best_s=best_so_far(rows)) for _, rows in curves.groupby("run", sort=False)])
    figure = plotting.style.new_figure(plotting.style.PAGE, 3.4)
    references = _setting(tables["learning_references"], setting)
    plotting.learning.learning_curves(
        curves, references, figure.subplots(), over="cpu_s", values=("best_s",), levels=LEVELS
    )
    caption = f"Best validation score so far, greedy or sampled; {_seeds(curves)}; from scratch, no teacher."
    return plotting.style.entitle(
        figure, "Training from scratch: variants of the training configuration, and Algorithm 1", caption, run.workload
    )


def training_curves(tables: Tables, run: Run) -> Figure:
    """Training report: validation score over time after imitation, a row per setting."""
    curves = tables["learning_curves"]
    curves = curves[(curves["variant"] == "recipe") & ~curves["setting"].isin(_alone(run))]
    settings = list(dict.fromkeys(curves["setting"]))
    rows = -(-len(settings) // 2)
    figure = plotting.style.new_figure(plotting.style.PAGE, 0.7 + 2.2 * rows)
    grid = figure.subplots(rows, 2, squeeze=False).ravel()
    for axes in grid[len(settings) :]:
        axes.set_axis_off()
    for axes, setting, letter in zip(grid, settings, "abcdefgh", strict=False):
        mine = _setting(curves, setting)
        mine = mine.assign(variant=["recipe" if name == "fast" else ALGORITHM_1 for name in mine["recipe"]])
        references = _setting(tables["learning_references"], setting)
        how = {"over": "cpu_s", "legend": False, "levels": LEVELS, "recipe": ROWS[WARM]}
        plotting.learning.learning_curves(mine, references, axes, **how)
        axes.set_title(f"({letter}) {_arrivals(setting)}", loc="left")
        axes.set_ylabel(axes.get_ylabel() if letter in "ac" else "")
    marks = {label: mark for axes in grid for mark, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(marks.values(), marks.keys(), loc="outside right center", fontsize=7)
    caption = f"A line per seed and score; {_seeds(curves)}; heuristics on the same validation sequences."
    return plotting.style.entitle(figure, "Fine-tuning after imitation", caption, run.workload)


def _setting(table, setting: str):
    return table[table["setting"] == setting]


def _arrivals(setting: str) -> str:
    """Title of a panel: on what a policy was trained."""
    parts = {"released": ", released rules", "busy": ", heavy load", "entry": ", with executor-entry cost"}
    arrivals = "batches" if "batch" in setting else "streams"
    return arrivals + "".join(words for part, words in parts.items() if part in setting)


def _alone(run: Run) -> list[str]:
    """Settings whose policies learn from scratch."""
    return [run.policies[use] for use in ("batch", "stream", "entry_stream")]


def _stored_recipe(tables: Tables, setting: str) -> str:
    runs = tables["learning_runs"]
    stored = runs[(runs["setting"] == setting) & (runs["stored_as"] == setting)]
    return str(stored["recipe"].iloc[0])


def _seeds(table) -> str:
    number = table.groupby(["setting", "recipe", "variant"])["seed"].nunique()
    low, high = int(number.min()), int(number.max())
    return count(low, "seed") if low == high else f"{low} to {high} seeds"


EXPERIMENT = Experiment(
    "learning",
    "§7.4 and appendix C, Figure 15a",
    compute,
    rooms=POLICY_ROOMS,
    figures=(from_random_weights, alone_ingredients, fig15a_curve, fig15a_encodings, continuing_parts, training_curves),
    inputs=(Files(["models/training"]), PoliciesIn("policies", SETTINGS)),
    tiny={"budgets_min": [1, 2]},
)
