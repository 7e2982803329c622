"""Environment of executor placement: Figure 2 by steps, Tables 3-5, clock, billing, prices, load."""

from __future__ import annotations

from dataclasses import replace

import pandas

from decima import plotting
from decima.evaluation.comparison import compare
from decima.plotting.words import count
from decima.systems.cloud import (
    RELEASED,
    TABLE_4,
    Billing,
    Cluster,
    PlacementSettings,
    VmType,
    make_cluster,
    parse_placement_jobs,
)
from decima.systems.cloud import engine as core
from decima.systems.cloud.settings import RELEASED_RULES, Rules
from decima.systems.cloud.sources import fetch_traces, traces_available
from decima.systems.cloud.system import Episode
from decima.systems.cloud.workload import jobs_of_rows
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables
from experiments.cloud import ROOMS
from experiments.experiment import Context, Experiment

# Figure 2: VMs (4 cores, 8 GB) and (8, 16); job 1 has two executors of (4, 8), job 2 one of (6, 10). Prices and run
# times are ours: the figure has none.
FIGURE_2 = Cluster((VmType("VM 1", 4, 8.0, 1, 3600.0), VmType("VM 2", 8, 16.0, 1, 7200.0)), label="Figure 2")
FIGURE_2_JOBS = jobs_of_rows([(0, 1, 1, 4, 8, 2, 10), (1, 2, 2, 6, 10, 1, 20)], "Figure 2")
FIGURE_2_ACTIONS = {"a": (1, 1), "b": (1, 2, 0, 2)}
SWITCHES = {"clock_goes_back": "clock goes back", "lookahead": "look ahead", "wait_frees_one": "wait frees one"}
BILLINGS = {
    "per second": Billing(),
    "at least 60 s": Billing(minimum_s=60.0),
    "boot of 30 s": Billing(boot_s=30.0),
    "started hours": Billing(granularity_s=3600.0),
}
# Lists of as many cores each: every core at one price, memory at extra cost, and little of it.
PRICES = ("table4", "families", "compute")


def require_traces(jobs: dict[str, str]) -> None:
    """Fetch the published traces if the jobs need them and they are not there."""
    if any("generated" not in text for text in jobs.values()) and not traces_available():
        fetch_traces()


def scored(schedulers, jobs, settings: PlacementSettings, seeds: int, context: Context, **columns) -> pandas.DataFrame:
    """Every measure of every scheduler on every seed, with constant columns before."""
    comparison = compare(schedulers, jobs, seeds=seeds, cluster=settings, workers=context.threads)
    frame = comparison.scores
    return pandas.DataFrame(columns, index=frame.index).join(frame.drop(columns="unfinished"))


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``cloud_`` with ``figure_2``, ``settings``, ``clock``, ``billing``, ``prices`` and ``load``."""
    require_traces(params["jobs"])
    return {
        "cloud_figure_2": figure_2_steps(),
        "cloud_settings": paper_settings(),
        "cloud_clock": _clock(params, context),
        "cloud_billing": _billing(params, context),
        "cloud_prices": _prices(params, context),
        "cloud_load": _load(params, context),
    }


def figure_2_steps() -> pandas.DataFrame:
    """Both action sequences of Figure 2, step by step."""
    rows = []
    for name, actions in FIGURE_2_ACTIONS.items():
        episode = Episode.of(FIGURE_2_JOBS, PlacementSettings(cluster=FIGURE_2, beta=1.0))
        episode.start(0)
        state = episode.state
        for step, action in enumerate(actions):
            job, before = FIGURE_2_JOBS.jobs[state.job].id, state.now_s
            reward = core.step(state.address, action)
            rows.append((name, step + 1, before, job, action, reward, state.cost))
    columns = ["episode", "step", "clock_s", "job", "action", "reward", "cost_units"]
    return pandas.DataFrame(rows, columns=columns)


def paper_settings() -> pandas.DataFrame:
    """Tables 3, 4 and 5 from the settings that the code runs with."""
    from decima.learning.algorithms.dqn import DqnConfig
    from decima.systems.cloud.policy.task import PAPER_REINFORCE

    rules, dqn = Rules(), DqnConfig()
    rows = [
        ("Table 3", "waiting with a job partly placed", rules.partial_wait_reward),
        ("Table 3", "waiting", rules.wait_reward),
        ("Table 3", "an executor placed", rules.placement_reward),
        ("Table 3", "a capacity broken; ends the episode", rules.invalid_reward),
        *(("Table 4", f"{vm.name}: cores", vm.cores) for vm in TABLE_4.types),
        *(("Table 4", f"{vm.name}: memory (GB)", vm.memory_gb) for vm in TABLE_4.types),
        *(("Table 4", f"{vm.name}: price ($ per hour)", vm.price_per_hour) for vm in TABLE_4.types),
        *(("Table 4", f"{vm.name}: VMs", vm.quantity) for vm in TABLE_4.types),
        ("Table 5", "R_fixed", rules.fixed_reward),
        ("Table 5", "longer when badly placed (%)", rules.penalty_percent),
        ("Table 5", "batch", dqn.minibatch),
        ("Table 5", "replay memory", dqn.memory),
        ("Table 5", "probability of a random action (DQN)", dqn.explore_start),
        ("Table 5", "learning rate", dqn.lr_start),
        ("Table 5", "discount", dqn.discount),
        ("Table 5", "steps per iteration (DQN)", dqn.steps),
        ("Table 5", "episodes per iteration (REINFORCE)", PAPER_REINFORCE["rollouts"]),
        ("Table 5", "iterations, normal arrivals", PAPER_REINFORCE["iterations"]),
    ]
    return pandas.DataFrame(rows, columns=["table", "setting", "value"])


def _clock(params: dict, context: Context) -> pandas.DataFrame:
    """Cost change by each switch, released cluster, percent of mode paper, per pattern and rule."""
    rows = []
    for pattern, jobs in params["jobs"].items():
        workload = parse_placement_jobs(jobs).workload(0)
        base = PlacementSettings.of_mode("paper", cluster=RELEASED)
        sets = {"paper": base, "all of them": replace(base, rules=RELEASED_RULES)}
        for switch, label in SWITCHES.items():
            changed = replace(base.rules, **{switch: getattr(RELEASED_RULES, switch)})
            sets[label] = replace(base, rules=changed)
        means: dict[str, dict[str, float]] = {}
        for name, settings in sets.items():
            frame = scored(params["rules"], workload, settings, params["seeds"], context)
            means[name] = frame.groupby("scheduler")["cost"].mean().to_dict()
        for name in [name for name in sets if name != "paper"]:
            for rule in params["rules"]:
                cost, before = means[name][rule], means["paper"][rule]
                rows.append((pattern, name, rule, before, cost, 100.0 * (cost / before - 1.0), params["seeds"]))
    columns = ["pattern", "switch", "scheduler", "cost_before", "cost", "change_percent", "seeds"]
    return pandas.DataFrame(rows, columns=columns)


def _billing(params: dict, context: Context) -> pandas.DataFrame:
    """Mean cost, duration and response time by way of billing, on drawn traces."""
    variants = {name: PlacementSettings(billing=billing) for name, billing in BILLINGS.items()}
    return _means("billing", variants, params, context)


def _prices(params: dict, context: Context) -> pandas.DataFrame:
    """The same by list of VMs and prices, 96 cores each."""
    clusters = [make_cluster(name) for name in PRICES]
    return _means("vms", {each.label: PlacementSettings(cluster=each) for each in clusters}, params, context)


def _means(column: str, variants: dict[str, PlacementSettings], params: dict, context: Context) -> pandas.DataFrame:
    """Means of rules on drawn traces of both patterns, by variant of the settings."""
    parts = []
    for pattern, jobs in params["drawn"].items():
        for name, settings in variants.items():
            about = {"pattern": pattern, column: name}
            parts.append(scored(params["billed"], jobs, settings, params["seeds"], context, **about))
    return _averages(parts, ["pattern", column, "scheduler"], params)


def _averages(parts: list[pandas.DataFrame], keys: list[str], params: dict) -> pandas.DataFrame:
    """Mean of every measure over seeds, by the keys."""
    means = pandas.concat(parts).groupby(keys, sort=False).mean(numeric_only=True)
    return means.drop(columns="seed").reset_index().assign(seeds=params["seeds"])


def _load(params: dict, context: Context) -> pandas.DataFrame:
    """Cost and response time by mean gap between arrivals, and by multiples of Table 4."""
    parts = []
    for copies in params["clusters"]:
        kinds = tuple(replace(vm, quantity=copies * vm.quantity) for vm in TABLE_4.types)
        settings = PlacementSettings(cluster=Cluster(kinds, label=f"{copies} x Table 4"))
        for gap_s in params["gaps_s"]:
            jobs = f"generated:pattern=burst,interarrival_s={gap_s}"
            about = {"vms": len(settings.cluster), "interarrival_s": gap_s}
            parts.append(scored(params["billed"], jobs, settings, params["seeds"], context, **about))
    return _averages(parts, ["vms", "interarrival_s", "scheduler"], params)


def by_pattern(table: pandas.DataFrame, draw, *about, height: float = 4.4, **subplots) -> plotting.style.Figure:
    """Figure with axes per pattern; ``draw`` receives the pattern's rows, ``about``, and the axes."""
    patterns = list(dict.fromkeys(table["pattern"]))
    figure = plotting.style.new_figure(plotting.style.PAGE, height)
    grid = figure.subplots(len(patterns), 1, squeeze=False, **subplots)[:, 0]
    for axes, pattern in zip(grid, patterns, strict=True):
        draw(table[table["pattern"] == pattern], *about, axes)
        axes.set_title(f"{pattern} arrivals", loc="left")
    return figure


def cloud_clock_effect(tables: Tables, run: Run) -> plotting.style.Figure:
    """What each rule of the published environment does to the cost."""
    table = tables["cloud_clock"]
    largest = table.groupby("pattern")["change_percent"].agg(lambda changes: changes.abs().max())
    calm = [pattern for pattern in largest.index if largest[pattern] < 0.5 < largest.max()]
    shown = table[~table["pattern"].isin(calm)]
    about, height = ("switch", "change_percent", "change of cost (%)"), 1.0 + 1.7 * shown["pattern"].nunique()
    figure = by_pattern(shown, plotting.cloud.bars, *about, height=height)
    caption = (
        "Cost against an environment whose clock only goes forward: one rule of the published code at a time, then all "
        "of them. The published code's VMs; random placements: means over "
        f"{count(int(table['seeds'].iloc[0]), 'seed')}."
        + "".join(f" With {pattern} arrivals no rule changes a cost by 0.5 %." for pattern in calm)
    )
    return plotting.style.entitle(figure, "What the rules of the published environment do", caption, "cloud VMs")


def _costs(table: pandas.DataFrame, column: str, title: str, caption: str) -> plotting.style.Figure:
    """Cost of rules by a column, per pattern; the caption receives the number of traces."""
    figure = by_pattern(table, plotting.cloud.bars, column, "cost", "cost ($)")
    caption = caption.format(traces=count(int(table["seeds"].iloc[0]), "drawn trace"))
    return plotting.style.entitle(figure, title, caption, "cloud VMs")


def cloud_billing_costs(tables: Tables, run: Run) -> plotting.style.Figure:
    """Cost of heuristics by billing model."""
    caption = "Mean over {traces} on the VMs of Table 4. With hourly billing a VM is kept to the end of its paid hour."
    return _costs(tables["cloud_billing"], "billing", "Cost by billing model", caption)


def cloud_price_costs(tables: Tables, run: Run) -> plotting.style.Figure:
    """Cost of rules by list of VMs and prices."""
    caption = "Mean over {traces} for VM catalogues of 96 cores; per-second billing, β = 1."
    return _costs(tables["cloud_prices"], "vms", "Cost by VM catalogue", caption)


def cloud_load_cost(tables: Tables, run: Run) -> plotting.style.Figure:
    """Cost and response time over the gap between arrivals and the number of VMs."""
    table = tables["cloud_load"]
    sizes = sorted(table["vms"].unique())
    figure = plotting.style.new_figure(plotting.style.PAGE, 4.6)
    grid = figure.subplots(2, len(sizes), squeeze=False, sharex=True, sharey="row")
    for column, vms in enumerate(sizes):
        rows = table[table["vms"] == vms]
        for row, measure in enumerate(("cost", "response_s")):
            axes = grid[row, column]
            wide = rows.pivot_table(index="interarrival_s", columns="scheduler", values=measure)
            for name in plotting.style.display_order(rows["scheduler"]):
                appearance = plotting.style.scheduler_style(name)
                axes.plot(wide[name], **appearance.line(), marker=appearance.marker, markersize=4)
            if column == 0:
                axes.set_ylabel(plotting.cloud.MEASURES[measure])
            if row == 0:
                axes.set_title(f"{vms} VMs", loc="left")
            elif column == len(sizes) // 2:
                axes.set_xlabel("mean interarrival time (s)")
    plotting.style.legend_beside(grid[0, -1])
    traces = count(int(table["seeds"].iloc[0]), "drawn trace")
    caption = f"100 generated jobs, mean over {traces}; 1 to {len(sizes)} times the VMs of Table 4 of the paper."
    return plotting.style.entitle(figure, "Cost by load and number of VMs", caption, "cloud VMs")


EXPERIMENT = Experiment(
    "cloud",
    "Islam et al., Figure 2, Tables 3 to 5",
    compute,
    rooms=ROOMS,
    figures=(cloud_clock_effect, cloud_billing_costs, cloud_price_costs, cloud_load_cost),
    tiny={
        "jobs": {"normal": "generated:n=6", "burst": "generated:pattern=burst,n=6"},
        "drawn": {"normal": "generated:n=6", "burst": "generated:pattern=burst,n=6"},
        "rules": ["rr", "random"], "billed": ["rr", "ilp_exact"], "seeds": 2, "clusters": [1], "gaps_s": [6, 12],
    },
)  # fmt: skip
