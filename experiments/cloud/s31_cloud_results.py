"""Cost and job times of placement policies: Figures 4 to 9, held-out traces, optimum.

Nothing is trained here. ``models/training/README.md`` explains four files: ``cloud.csv`` has the curves of training
runs, ``cloud_grid.csv`` those of the paper's recipes by weight of cost. ``cloud_agents.csv`` has what their policies do
with the published traces, ``cloud_ablation.csv`` the fast recipe without one of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas

from decima import plotting
from decima.plotting.words import count
from decima.systems.cloud import PlacementSettings, parse_placement_jobs
from decima.systems.cloud.optimum.best import optimum
from decima.systems.cloud.policy.scheduler import learned
from decima.workload.sources import WorkloadSource
from experiments.captions import INTERVAL, Run, Tables
from experiments.cloud import ROOMS
from experiments.cloud.s30_cloud import by_pattern, require_traces, scored
from experiments.comparisons import paired_changes
from experiments.experiment import Context, Experiment, Files, Policies
from experiments.training_files import read_training_file

# Of models/training.
CURVES, GRID, AGENTS, ABLATION = "cloud.csv", "cloud_grid.csv", "cloud_agents.csv", "cloud_ablation.csv"
CURVE_COLUMNS = ("learner", "pattern", "beta", "seed", "iteration", "cpu_s", "decisions_seen", "reached")
GRID_COLUMNS = (*CURVE_COLUMNS, "steps", "complete")
MEASURES = ("cost", "duration_s", "response_s", "good", "waits", "reward")  # of a placement
AGENT_COLUMNS = ("learner", "variant", "pattern", "beta", "seed", "acts", "iteration", "complete", *MEASURES)
RAW = "raw"  # variant of the grid whose inputs are as they are; of it the mean return was not kept
SCALED, MASKED = "scaled", "scaled_mask"
MASKS = {"cloud_scaled": "without a mask", "cloud_masked": "with a mask"}
# Names of agents that the paper's recipes trained, by learner and variant.
AGENT_NAMES = {
    ("paper_dqn", SCALED): "dqn", ("paper_dqn", MASKED): "dqn_mask",
    ("paper_reinforce", SCALED): "reinforce", ("paper_reinforce", MASKED): "reinforce_mask",
}  # fmt: skip
UNDISCOUNTED = "reinforce_undiscounted"  # with a mask
ABLATION_COLUMNS = ("variant", "pattern", "beta", "seed", "cpu_s", "cost", "loss_ratio")
PAPER_ITERATIONS = {"normal": 10_000, "burst": 20_000}
OPTIMUM, HERE, LEARNED = "cloud_optimum", "learned_here", "learned"
# Trained from random weights on drawn bursts for cost alone; a job may wait once.
RANDOM = "cloud-burst-random"
# With whom held-out results are compared; who is drawn in the paper's Figures 6 to 9, and who beside the optimum.
BASELINES = ("aep", "ilp_exact", "good_first")
DRAWN = ("rr", "rrc", "ff", "ilp", "aep", *AGENT_NAMES.values(), UNDISCOUNTED, LEARNED, OPTIMUM)
OURS = ("aep", "ilp", "ilp_beta", "good_first", LEARNED, HERE, OPTIMUM)


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables of scores, held-out traces and changes there, and of what training runs wrote."""
    require_traces(params["jobs"])
    grid = read_training_file(GRID, ("variant", *GRID_COLUMNS, "reward"))
    curves = grid.drop(columns=["cpu_s", "decisions_seen"])
    held_out = _held_out(params, context)
    changes = []
    for (pattern, beta), rows in held_out.groupby(["pattern", "beta"], sort=False):
        for metric in ("cost", "duration_s"):
            table = rows.assign(avg_jct_s=rows[metric])
            mine = [name for name in (*params["rules"], LEARNED, RANDOM) if name in set(table["scheduler"])]
            paired = paired_changes(table, mine, BASELINES)
            changes.append(paired.assign(pattern=pattern, beta=beta, metric=metric))
    return {
        "cloud_scores": _on_the_traces(params, context),
        "cloud_held_out": held_out,
        "cloud_changes": pandas.concat(changes, ignore_index=True),
        "cloud_curves": read_training_file(CURVES, CURVE_COLUMNS),
        "cloud_grid": grid[grid["variant"] == RAW][list(GRID_COLUMNS)],
        "cloud_scaled": curves[curves["variant"] == SCALED],
        "cloud_masked": curves[curves["variant"] == MASKED].drop(columns="variant"),
        "cloud_agents": read_training_file(AGENTS, AGENT_COLUMNS).dropna(),  # those that place all jobs
        "cloud_ablation": read_training_file(ABLATION, ABLATION_COLUMNS),
    }


def _on_the_traces(params: dict, context: Context) -> pandas.DataFrame:
    """Every measure on one trace per pattern and weight of cost, by scheduler."""
    parts = []
    for pattern, jobs in params["jobs"].items():
        workload = parse_placement_jobs(jobs).workload(0)
        schedulers = {name: name for name in params["rules"]} | {LEARNED: learned()}
        if pattern in params["trained_here"]:
            schedulers[HERE] = learned(params["trained_here"][pattern])
        for beta in params["betas"]:
            settings = PlacementSettings(beta=beta)
            about = {"pattern": pattern, "beta": beta}
            parts.append(scored(schedulers, workload, settings, 1, context, **about, kind="run"))
            best = optimum(workload, settings, nodes=params["nodes"], budget=params["budget"])
            result = best.result
            row = about | {
                "kind": best.status, "scheduler": OPTIMUM, "seed": 0, "cost": result.cost,
                "duration_s": result.mean_duration_s, "response_s": result.response_s,
                "good": result.good_placements, "waits": result.waits, "reward": result.reward,
            }  # fmt: skip
            parts.append(pandas.DataFrame([row]))
        # The agents were trained on the published traces.
        if jobs == pattern:
            parts.append(_agents(pattern, params["betas"]))
    return pandas.concat(parts, ignore_index=True)


def _agents(pattern: str, betas: Sequence[float]) -> pandas.DataFrame:
    """Scores of the paper's agents whose episodes are complete, greedy, else sampled."""
    table = read_training_file(AGENTS, AGENT_COLUMNS).dropna()
    table = table[(table["pattern"] == pattern) & table["beta"].isin(betas)]
    table = table.sort_values("acts").drop_duplicates(["learner", "variant", "beta", "seed"])  # greedy comes first
    named = [AGENT_NAMES.get(pair) for pair in zip(table["learner"], table["variant"], strict=True)]
    table = table.assign(scheduler=named, kind=table["acts"]).dropna(subset="scheduler")
    return table[["pattern", "beta", "kind", "scheduler", "seed", *MEASURES]]


def _held_out(params: dict, context: Context) -> pandas.DataFrame:
    """Every measure on drawn traces that nobody trained on."""
    parts = []
    for pattern, jobs in params["drawn"].items():
        schedulers = {name: name for name in params["rules"]} | {LEARNED: learned()}
        for beta in params["held_out_betas"]:
            if pattern == "burst" and beta == 1:
                schedulers[RANDOM] = learned(RANDOM)
            about = {"pattern": pattern, "beta": beta}
            parts.append(scored(schedulers, jobs, PlacementSettings(beta=beta), params["seeds"], context, **about))
    return pandas.concat(parts, ignore_index=True)


def _per_pattern(tables: Tables, draw, *about, drawn=DRAWN, height: float = 5.2) -> plotting.style.Figure:
    scores = tables["cloud_scores"]
    if scores["scheduler"].isin(AGENT_NAMES.values()).any():  # the traces are those that agents were trained on
        agents = tables["cloud_agents"].query("variant == 'scaled_mask_undiscounted' and acts == 'greedy'")
        scores = pandas.concat([scores, agents.assign(scheduler=UNDISCOUNTED)])
    scores = scores.groupby(["pattern", "beta", "scheduler"], sort=False)[list(MEASURES)].mean()
    return by_pattern(scores.reset_index().query("scheduler in @drawn"), draw, *about, height=height)


_OPTIMUM = (
    "Optimum or best found: by $R_{epi}$ of each β without such waits, so one measure alone can be lower elsewhere; "
    "exact where all busy periods could be searched."
)


def _iterations(grid: pandas.DataFrame) -> str:
    """Minimum and maximum iterations by pattern, with those of the paper, in words."""
    ends = grid.groupby(["pattern", "learner", "beta", "seed"])["iteration"].max()
    ends = ends.groupby("pattern").agg(["min", "max"])
    return ", ".join(
        f"{low:,}{f' to {most:,}' if most > low else ''} of the paper's {PAPER_ITERATIONS[name]:,} ({name})"
        for name, low, most in ends.sort_index(ascending=False).itertuples()
    )


def _iterations_by_mask(tables: Tables) -> str:
    """Iterations without and with a mask, and the number of training runs."""
    ends = (f"{words} {_iterations(tables[name])}" for name, words in MASKS.items())
    return f"{'; '.join(ends)}; means over up to {count(tables['cloud_masked']['seed'].nunique(), 'training')}"


def _caption(tables: Tables) -> str:
    """Caption of what is drawn over the weight of cost."""
    parts = ["One trace per pattern, VMs of Table 4, true clock."]
    if tables["cloud_scores"]["scheduler"].isin(AGENT_NAMES.values()).any():
        parts.append(
            "DQN and REINFORCE: trained from scratch on this trace, scaled inputs, iterations: "
            f"{_iterations_by_mask(tables)}; greedy, or the mean of sampled runs that place all jobs "
            "where greedy does not. No discount: with a mask."
        )
    parts.append(f"Learned: imitation of the ILP with β, then PPO, on other traces. {_OPTIMUM}")
    return " ".join(parts)


def fig6_cost(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 6: cost over the weight of cost."""
    figure = _per_pattern(tables, plotting.cloud.over_beta, "cost")
    return plotting.style.entitle(figure, "Figure 6: cost of VMs", _caption(tables), "cloud VMs")


def fig7_duration(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 7: mean duration over the weight of cost."""
    figure = _per_pattern(tables, plotting.cloud.over_beta, "duration_s")
    return plotting.style.entitle(figure, "Figure 7: mean duration of jobs", _caption(tables), "cloud VMs")


def fig8_good_placements(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 8: good placements over the weight of cost."""
    figure = _per_pattern(tables, plotting.cloud.over_beta, "good")
    return plotting.style.entitle(figure, "Figure 8: good placements", _caption(tables), "cloud VMs")


_POINTS = "A point per β; hollow: another β of the same line is better in both."


def fig9_cost_and_time(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 9: cost against mean duration, a point per weight of cost."""
    figure = _per_pattern(tables, plotting.cloud.cost_and_time, height=5.9)
    caption = f"{_caption(tables)} {_POINTS}"
    return plotting.style.entitle(figure, "Figure 9: what the weight of cost trades", caption, "cloud VMs")


def cloud_ours(tables: Tables, run: Run) -> plotting.style.Figure:
    """Cost against mean duration of the rules and policies of this project."""
    figure = _per_pattern(tables, plotting.cloud.cost_and_time, drawn=OURS)
    caption = (
        "One trace per pattern, VMs of Table 4, true clock. Learned: imitation of the ILP with β, then PPO. Learned on "
        "the trace: with normal arrivals the same, which may wait although it could place, at no cost here; in the "
        f"burst the plan of a search, imitated, without such waits. {_OPTIMUM} {_POINTS}"
    )
    return plotting.style.entitle(figure, "Rules and policies of this project", caption, "cloud VMs")


def _agent_curves(tables: Tables, learner: str, title: str) -> plotting.style.Figure:
    """Training from scaled inputs: returns by pattern, without and with a mask."""
    patterns, letters = list(PAPER_ITERATIONS), iter("abcd")
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.2 * len(patterns) + 0.4)
    complete = []
    for row, pattern in zip(figure.subplots(len(patterns), len(MASKS), sharey=True), patterns, strict=True):
        for axes, table in zip(row, MASKS, strict=True):
            rows = tables[table].query("learner == @learner and pattern == @pattern")
            plotting.cloud.training_by_beta(rows, "reward", axes, legend=table == "cloud_masked")
            axes.set_title(f"({next(letters)}) {pattern} arrivals, {MASKS[table]}", loc="left")
            end = rows[rows["iteration"] > 0.9 * rows["iteration"].max()]
            complete.append(f"{100.0 * end['complete'].mean():.3g} %")
        row[1].set_ylabel("")
    differs = "rewards in units of 200" if learner == "paper_dqn" else "returns less their mean"
    caption = (
        f"Hyperparameters of Table 5, inputs divided by their largest values, {differs}. Running median of nine means "
        "over the training episodes between two validations. Episodes that place all jobs in the last tenth of the "
        f"training: {', '.join(f'{part} ({letter})' for letter, part in zip('abcd', complete, strict=True))}. "
        f"Iterations: {_iterations_by_mask(tables)}."
    )
    return plotting.style.entitle(figure, title, caption, "cloud VMs")


def fig4_dqn(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 4: training of DQN by weight of cost, from scaled inputs."""
    return _agent_curves(tables, "paper_dqn", "Figure 4: DQN by weight of cost")


def fig5_reinforce(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 5: training of REINFORCE by weight of cost, from scaled inputs."""
    return _agent_curves(tables, "paper_reinforce", "Figure 5: REINFORCE by weight of cost")


def fig4_grid(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figures 4 and 5 from raw inputs, without a mask, over all weights of cost."""
    grid = tables["cloud_grid"]
    patterns = list(dict.fromkeys(grid["pattern"]))
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.4)
    panels = zip("abcd", figure.subplots(1, len(patterns), sharey=True, squeeze=False)[0], patterns, strict=False)
    for letter, axes, pattern in panels:
        plotting.cloud.training_band(grid[grid["pattern"] == pattern], "steps", axes, legend=pattern == patterns[-1])
        axes.set_title(f"({letter}) {pattern} arrivals", loc="left")
        axes.set_ylabel(axes.get_ylabel() if pattern == patterns[0] else "")
    ends = grid.sort_values("iteration").groupby(["learner", "beta", "seed", "pattern"], sort=False).tail(1)
    reached = ends.groupby(["learner", "pattern"], sort=False)["reached"].mean()
    shares = ", ".join(
        f"{plotting.style.scheduler_style(learner).label} {reached[learner, pattern]:.2g} % ({pattern})"
        for learner, pattern in reached.index
    )
    betas = ", ".join(f"{beta:g}" for beta in sorted(grid["beta"].unique()))
    caption = (
        f"Hyperparameters of Table 5 without a mask, inputs as they are, {count(grid['seed'].nunique(), 'seed')}, β of "
        f"{betas}. An invalid action ends an episode, so that few actions mean failure. Lines: means over the runs "
        f"that got so far; shaded: minimum to maximum. Mean share of $R_{{fixed}}$ at the end: {shares}. Iterations: "
        f"{_iterations(grid)}."
    )
    return plotting.style.entitle(figure, "Figures 4 and 5: training from raw inputs", caption, "cloud VMs")


def fig4_training(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figures 4 and 5: training on the published traces, fast recipe and paper's."""
    curves = tables["cloud_curves"]
    patterns = list(dict.fromkeys(curves["pattern"]))
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.4)
    panels = zip("abcd", figure.subplots(1, len(patterns), sharey=True, squeeze=False)[0], patterns, strict=False)
    for letter, axes, pattern in panels:
        rows = curves[curves["pattern"] == pattern]
        plotting.cloud.last_reached(rows, axes)
        axes.set_title(f"({letter}) {pattern} arrivals, β = {rows['beta'].iloc[0]:g}", loc="left")
    seeds = count(curves["seed"].nunique(), "seed")
    caption = (
        f"At the end of training: $R_{{epi}}$ of the greedy policy as a share of $R_{{fixed}}$, 0 where it does not "
        f"place all jobs. Mean over at most {seeds}; bar: minimum to maximum; number: decisions seen. Runs of "
        f"the paper's "
        "recipe are far shorter than its 10,000 iterations."
    )
    return plotting.style.entitle(figure, "Figures 4 and 5: training, fast recipe and paper's", caption, "cloud VMs")


def cloud_held_out_changes(tables: Tables, run: Run) -> plotting.style.Figure:
    """Paired change of cost on held-out traces."""
    changes = tables["cloud_changes"]
    chosen = changes[(changes["metric"] == "cost") & (changes["against"] == "aep") & (changes["beta"] == 1.0)]
    chosen = chosen[chosen["scheduler"].isin(["ilp", "ilp_exact", "good_first", LEARNED])]
    figure = plotting.style.new_figure(plotting.style.PAGE, 3.2)
    axes = plotting.bars.change_points(chosen, "pattern", figure.subplots())
    axes.set_xlabel("change of cost against AEP (%)")
    seeds = int(chosen["seeds"].iloc[0])
    caption = f"Weight of cost 1, paired by trace; bars: {INTERVAL}; {count(seeds, 'trace')} per pattern."
    return plotting.style.entitle(figure, "Cost on held-out traces", caption, "cloud VMs")


EXPERIMENT = Experiment(
    "cloud_results",
    "Islam et al., Figures 4 to 9",
    compute,
    rooms=(*ROOMS, "systems/cloud/optimum"),
    figures=(
        fig4_dqn, fig5_reinforce, fig4_grid, fig4_training, fig6_cost, fig7_duration, fig8_good_placements,
        fig9_cost_and_time, cloud_ours, cloud_held_out_changes,
    ),
    inputs=(
        Files([f"models/training/{name}" for name in (CURVES, GRID, AGENTS, ABLATION)]),
        Policies(("cloud-fast", "cloud-normal", "cloud-burst-search", RANDOM)),
    ),
    tiny={
        "jobs": {"normal": "generated:n=5", "burst": "generated:pattern=burst,n=5"},
        "drawn": {"normal": "generated:n=5", "burst": "generated:pattern=burst,n=5"},
        "trained_here": {"normal": "cloud-normal"},
        "rules": ["rr", "aep", "ilp_exact", "good_first"], "betas": [0.0, 1.0], "held_out_betas": [1.0], "seeds": 2,
        "nodes": 1000, "budget": 50,
    },
)  # fmt: skip
