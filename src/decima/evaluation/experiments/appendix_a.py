"""Appendix A: the job of Figure 16 under a critical path heuristic and under its best order of stages."""

from __future__ import annotations

import pandas

from decima.evaluation.appendix_a import run_example
from decima.evaluation.experiments.store import Context
from decima.workload.sources import WorkloadSource


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``appendix_a`` (makespans for every epsilon) and ``appendix_a_tasks`` (schedules for the largest)."""
    examples = [run_example(epsilon_s) for epsilon_s in sorted(params["epsilon_s"])]
    shown = examples[-1]
    tasks = [
        getattr(shown, case).log.tasks().drop(columns="wave").assign(case=case) for case in ("critical_path", "optimal")
    ]
    rows = [row for example in examples for row in example.rows()]
    return {"appendix_a": pandas.DataFrame(rows), "appendix_a_tasks": pandas.concat(tasks)}
