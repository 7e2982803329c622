"""Figures of the policy and its training: 5, 6, 7, 15 and the training report."""

from __future__ import annotations

from decima.evaluation.experiments.latency import event_intervals
from decima.plotting import latency, learning, network, style
from decima.plotting.run import Run, Tables, distinct
from decima.plotting.style import Figure, count


def fig05_embeddings(tables: Tables, run: Run) -> Figure:
    """Figure 5."""
    stages, edges = tables["policy_stages"], tables["policy_edges"]
    figure = network.embeddings(stages, edges, tables["policy_nodes"], tables["policy_summaries"])
    caption = (
        f"{distinct(stages, 'job', 'job')} under way, 1 run, policy {run.policies['batch']}. Data flow downwards, "
        "messages upwards: a stage is embedded in the step after its last child. Below: features x and embeddings e of "
        "the stages, y of the jobs, z of the cluster."
    )
    return style.entitle(figure, "Figure 5: from features to embeddings", caption, run.workload)


def fig06_choice(tables: Tables, run: Run) -> Figure:
    """Figure 6."""
    candidates = tables["policy_candidates"]
    figure = style.new_figure(style.PAGE, 3.0)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.2))
    network.stage_probabilities(candidates, left)
    network.limit_probabilities(tables["policy_limits"], right)
    caption = (
        f"The decision of Figure 5, policy {run.policies['batch']}: {count(len(candidates), 'stage')} can be chosen, "
        f"score q above the bar; {count(len(tables['policy_limits']), 'limit')} for the job of the chosen stage. 1 "
        f"run, {run.cluster}."
    )
    return style.entitle(figure, "Figure 6: from scores to a decision", caption, run.workload)


def fig07_sequences(tables: Tables, run: Run) -> Figure:
    """Figure 7."""
    arrivals, returns = tables["variance_arrivals"], tables["variance_returns"]
    shared_s, horizon_s = _times(tables)
    figure = learning.sequence_penalties(arrivals, returns, shared_s, horizon_s)
    caption = (
        f"The worst and the best for the reward of {distinct(returns, 'sequence', 'sequence')} that agree up to t = "
        f"{shared_s:g} s. Line and band: mean and range of {distinct(returns, 'rollout', 'rollout')} each of policy "
        f"{run.policies['stream']}, sampled; return ± standard deviation; {run.cluster}."
    )
    return style.entitle(figure, "Figure 7: what happens after the action decides the reward", caption, run.workload)


def fig07_baselines(tables: Tables, run: Run) -> Figure:
    """What is left of the variance of returns with either baseline."""
    returns = tables["variance_returns"]
    shared_s, horizon_s = _times(tables)
    figure = learning.baseline_spread(tables["variance_explained"], shared_s).figure
    caption = (
        f"{distinct(returns, 'sequence', 'sequence')}, {distinct(returns, 'rollout', 'rollout')} each, returns up to "
        f"{horizon_s:g} s, {run.cluster}."
    )
    return style.entitle(figure, "Noise in the gradient with either baseline", caption, run.workload)


def fig15a_curve(tables: Tables, run: Run) -> Figure:
    """Figure 15a: learning on continuous arrivals."""
    setting = run.policies["stream"]
    curves, references = (_setting(tables[name], setting) for name in ("learning_curves", "learning_references"))
    curves = curves[curves["variant"].isin(["recipe", "limit as output", "limit per stage"])]
    curves = curves[curves["recipe"] == _stored_recipe(tables, setting)]
    figure = learning.learning_curves(curves, references).figure
    caption = f"Setting {setting}; {_seeds(curves)}; validation sequences that are neither trained nor tested on."
    return style.entitle(figure, "Figure 15a: learning curve, continuous arrivals", caption, run.workload)


def fig15b_latency(tables: Tables, run: Run) -> Figure:
    """Figure 15b, and latency over the number of jobs."""
    decisions, by_jobs = tables["latency"], tables["latency_jobs"]
    figure = style.new_figure(style.PAGE, 3.2)
    left, right = figure.subplots(1, 2)
    latency.delay_cdf(decisions["latency_ms"].to_numpy(), event_intervals(decisions["time_s"].to_numpy()), left)
    latency.latency_over_jobs(by_jobs, right)
    per_size = int(by_jobs.groupby("jobs").size().max())
    caption = (
        f"1 thread. Left: {count(len(decisions), 'decision')} of 1 stream; right: up to {per_size} decisions of 1 "
        f"batch per size; policy {run.policies['stream']}, {run.cluster}."
    )
    return style.entitle(figure, "Figure 15b: time per decision", caption, run.workload)


def training_curves(tables: Tables, run: Run) -> Figure:
    """Training report: validation score over wall time and CPU time, a row of panels per setting."""
    curves = tables["learning_curves"]
    curves = curves[curves["variant"] == "recipe"]
    settings = list(dict.fromkeys(curves["setting"]))
    figure = style.new_figure(style.PAGE, 0.7 + 2.2 * len(settings))
    grid = figure.subplots(len(settings), 2, squeeze=False, sharey="row")
    for row, setting in zip(grid, settings, strict=True):
        mine = _setting(curves, setting)
        mine = mine.assign(variant=["recipe" if name == "fast" else f"recipe {name}" for name in mine["recipe"]])
        for axes, over in zip(row, ("wall_s", "cpu_s"), strict=True):
            references = _setting(tables["learning_references"], setting)
            learning.learning_curves(mine, references, axes, over=over, legend=axes is grid[0, -1])
            axes.set_title(setting, loc="left")
        row[1].set_ylabel("")
    caption = f"A line per seed and score; {_seeds(curves)}; heuristics on the same validation sequences."
    return style.entitle(figure, "Learning over time", caption, run.workload)


def training_ingredients(tables: Tables, run: Run) -> Figure:
    """Training report: what the ingredients of the recipe are worth."""
    budgets = tables["learning_budgets"]
    budgets = budgets[budgets["recipe"] == "fast"]
    settings = list(dict.fromkeys(budgets["setting"]))
    rows = [_setting(budgets, setting)["variant"].nunique() for setting in settings]
    figure = style.new_figure(style.PAGE, 0.8 + sum(0.75 + 0.3 * number for number in rows))
    grid = figure.subplots(len(settings), 1, squeeze=False, height_ratios=[2.5 + number for number in rows])[:, 0]
    for axes, setting in zip(grid, settings, strict=True):
        learning.budget_points(_setting(budgets, setting), axes, legend=axes is grid[0])
        axes.set_title(setting, loc="left")
    for axes in grid[:-1]:
        axes.set_xlabel("")
    caption = (
        f"Best checkpoint on the validation sequences by that time, greedy or sampled; dots: runs, bars: their mean, "
        f"arrows: further right; {_seeds(budgets)}."
    )
    return style.entitle(figure, "What the ingredients of the recipe are worth", caption, run.workload)


def _times(tables: Tables) -> tuple[float, float]:
    """When the sequences part, and the horizon."""
    table = tables["variance_explained"]
    return float(table.loc[table["parted"] == 0, "time_s"].max()), float(table["time_s"].max())


def _setting(table, setting: str):
    return table[table["setting"] == setting]


def _stored_recipe(tables: Tables, setting: str) -> str:
    runs = tables["learning_runs"]
    stored = runs[(runs["setting"] == setting) & (runs["stored_as"] == setting)]
    return str(stored["recipe"].iloc[0])


def _seeds(table) -> str:
    number = table.groupby(["setting", "recipe", "variant"])["seed"].nunique()
    low, high = int(number.min()), int(number.max())
    return count(low, "seed") if low == high else f"{low} to {high} seeds"
