"""Appendix I: trace policies trained with fewer jobs or executors than tested (Table 3)."""

from __future__ import annotations

import pandas

from decima import plotting
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.sources import WorkloadSource, parse_jobs
from experiments.captions import INTERVAL, Run, Tables, distinct
from experiments.comparisons import changes_by_load, scores_of_trainings
from experiments.decima.s07_packing import classes
from experiments.experiment import Context, Experiment, PoliciesIn
from experiments.rooms import POLICY_ROOMS

# The policy that was trained in the setting of the test, and whom all are compared with.
AS_TESTED = "trained_test"
AGAINST = (AS_TESTED, "fair", "priced_srw")


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``appendix_i`` (scores), ``appendix_i_changes`` (paired) and ``appendix_i_trainings``, one by one.

    Batches of the second half of the trace, whatever the run's own workload is; policies are trained on batches of the
    first half, from scratch. ``priced_srw`` has parameters that were tuned on streams of the trace.

    Differs: a tenth of the executors, 1,000 in the test and 100 in training. The numbers of jobs are those of the
    paper.
    """
    trace = params["trace"]
    drawn = parse_jobs(f"{trace}{',' if ':' in trace else ':'}part=test,arrivals=batch,n={params['jobs']}")
    seeds = list(range(params["batches"]))
    batches = [drawn.workload(seed) for seed in seeds]
    cluster = Settings.of_mode("paper", classes=classes(params["executors"]))
    rules = {"fair": make_scheduler("fair"), "priced_srw": make_scheduler("priced_srw", **params["rule"])}
    where = {"workload": batches[0].label, "jobs": params["jobs"], "executors": cluster.executors}
    known = (batches, seeds, cluster, context, "appendix I", rules)
    scores = scores_of_trainings(params["policies"], *known).assign(**where)
    whole, each = changes_by_load(scores, list(params["policies"]), AGAINST, by="executors")
    return {"appendix_i": scores, "appendix_i_changes": whole, "appendix_i_trainings": each}


def table3_generalisation(tables: Tables, run: Run) -> plotting.style.Figure:
    """Table 3 as changes: average JCT in the test setting, by setting of the training."""
    table = tables["appendix_i"]
    (label,), (jobs,), (executors,) = (table[name].unique() for name in ("workload", "jobs", "executors"))
    rows = table.groupby(["scheduler", "seed"], sort=False, as_index=False)["avg_jct_s"].mean()
    rows["test"] = f"test: {jobs} jobs, {executors:,} executors"
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.8)
    plotting.bars.paired_panels(rows, figure, group="test", against="trained_test")
    caption = (
        f"Paired by batch, {distinct(table, 'seed', 'batch')}; bars: {INTERVAL}; executors in four "
        f"classes. Policies: mean of {distinct(table, 'training', 'training seed')}, with equal numbers of jobs "
        f"per iteration."
    )
    return plotting.style.entitle(figure, "Table 3: trained at a smaller scale", caption, label)


EXPERIMENT = Experiment(
    "appendix_i",
    "appendix I, Table 3",
    compute,
    rooms=(*POLICY_ROOMS, "workload/alibaba"),
    figures=(table3_generalisation,),
    inputs=(PoliciesIn("appendix_i", ("policies",)),),
    tiny={
        "trace": "alibaba_like:jobs=60",
        "jobs": 4,
        "executors": 8,
        "batches": 2,
        "rule": {"price": 0.1},
        "policies": {"trained_test": ["tiny", "tiny"], "trained_fewer_jobs": "tiny"},
    },
)
