"""§7.4: value of each key idea by load (Figure 14), and encodings of limits (§5.2)."""

from __future__ import annotations

import pandas

from decima import plotting
from decima.workload.sources import WorkloadSource
from experiments.captions import INTERVAL, Run, Tables, distinct
from experiments.comparisons import changes_by_load, on_streams_of_load
from experiments.experiment import Context, Experiment, PoliciesIn, Profiles, TablesOf
from experiments.rooms import POLICY_ROOMS

# With what the policies are compared: the best heuristic of the paper, tuned at every gap, and the better rule of ours.
AGAINST = ("weighted_fair", "capped_srw")
# Parameter that names the policies -> how their training began.
STARTS = {"warm": "imitation first", "random": "random weights"}


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``ablations`` (scores on the streams of ``load``), ``ablation_changes`` and ``ablation_trainings``.

    From scratch, every policy is trained at the gap that it is tested at, as in the paper, with the same number
    of iterations and three seeds. The encodings of limits also have three seeds, and are trained at the smallest gap.
    The one for batches, and all that imitated a rule first (recipe ``fast``), at the smallest gap, have one training.
    Changes are paired, against heuristics: the mean over training runs, and every training.
    """
    scores, changes, trainings = [], [], []
    for key, start in STARTS.items():
        table = on_streams_of_load(params[key], source, params, context, f"ablations, {start}")
        whole, each = changes_by_load(table, list(params[key]), AGAINST)
        scores.append(table.assign(start=start))
        changes.append(whole.assign(start=start))
        trainings.append(each.assign(start=start))
    return {
        "ablations": pandas.concat(scores),
        "ablation_changes": pandas.concat(changes),
        "ablation_trainings": pandas.concat(trainings),
    }


def _by_training(tables: Tables) -> pandas.DataFrame:
    """Changes against weighted fair; of several training runs the middle, minimum and maximum."""
    names = ["start", "scheduler", "interarrival_s"]
    whole, each = (
        table[table["against"] == AGAINST[0]] for table in (tables["ablation_changes"], tables["ablation_trainings"])
    )
    spread = each.groupby(names, sort=False)["change_percent"].agg(["median", "min", "max"]).reset_index()
    spread.columns = [*names, "change_percent", "low", "high"]
    return pandas.concat([whole[whole["trainings"] == 1][spread.columns], spread])


def fig14_ablations(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 14: change against tuned weighted fair by load, whole policy and without key ideas."""
    changes, number = _by_training(tables), tables["ablation_changes"]["trainings"].max()
    gaps = sorted(changes["interarrival_s"].unique(), reverse=True)
    figure = plotting.style.new_figure(plotting.style.PAGE, 3.6)
    grid = figure.subplots(len(STARTS), len(gaps), sharey="row", squeeze=False, height_ratios=(7, 7))
    letters = iter("abcdefgh")
    for row, start in zip(grid, STARTS.values(), strict=True):
        for axes, gap in zip(row, gaps, strict=True):
            rows = changes[(changes["start"] == start) & (changes["interarrival_s"] == gap)]
            plotting.bars.change_rows(rows, axes, largest=100.0)
            how = start.replace("random weights", "from scratch")
            axes.set_title(f"({next(letters)}) {how}, a job every {gap:g} s", loc="left")
    for axes in grid[-1]:
        axes.set_xlabel("average JCT against tuned weighted fair (%)")
    streams = distinct(tables["ablations"], "seed", "stream")
    caption = (
        f"Paired by stream; {streams} per column, {run.cluster}; weighted fair is tuned for each column. From "
        f"scratch: {number} seeds, trained at the interarrival time of the column; point: median, bar: minimum "
        f"to maximum. "
        f"All others: one seed, bar: {INTERVAL} over streams. A number at the "
        "edge is a point beyond 100 %. The paper's Figure 14 has loads of 25 to 85 %."
    )
    return plotting.style.entitle(figure, "Figure 14: ablation of the key ideas", caption, run.workload)


EXPERIMENT = Experiment(
    "ablations",
    "§7.4, Figure 14",
    compute,
    rooms=POLICY_ROOMS,
    figures=(fig14_ablations,),
    inputs=(Profiles(), TablesOf("load"), PoliciesIn("ablations", ("warm", "random"))),
    tiny={
        "interarrival_s": [25, 14],
        "streams": 2,
        "jobs": 4,
        "warm": {"decima_full": "tiny", "decima_no_graph": "tiny"},
        "random": {"decima_full": {"25": ["tiny", "tiny"], "14": "tiny"}, "decima_no_limit": "tiny"},
    },
)
