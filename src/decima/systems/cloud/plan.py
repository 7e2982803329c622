"""Plans: an episode as instructions, executor by executor, with what each job adds to the bill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from decima.systems.cloud.result import PlacementResult

if TYPE_CHECKING:
    import pandas

PLAN_COLUMNS = (
    "job",
    "executor",
    "vm",
    "type",
    "cores",
    "memory_gb",
    "submit_s",
    "start_s",
    "finish_s",
    "well_placed",
    "job_cost",
)


def plan_frame(result: PlacementResult) -> pandas.DataFrame:
    """One row per executor, columns :data:`PLAN_COLUMNS`: job (id), executor, VM by name, times, cost of the whole job.

    ``submit_s`` is when all executors of the job are placed. ``job_cost`` is what the job adds to the bill of all VMs,
    in the currency of their list, the same in every row of a job; over jobs it adds up to the cost.

    Raises:
        ConfigError: Not all jobs were placed.
    """
    log = result.require_complete().executors()
    index = {job.id: number for number, job in enumerate(result.workload.jobs)}
    job = np.array([index[each] for each in log["job"]])
    types = np.array([vm.name for vm in result.settings.cluster.vms])
    table = log.rename(columns={"placed_s": "submit_s"}).drop(columns="vm_name")
    table["type"] = types[log["vm"]]
    table["vm"] = log["vm_name"]
    table["well_placed"] = result.well_placed[job]
    table["job_cost"] = result.job_cost[job]
    return table[list(PLAN_COLUMNS)]


def plan_document(result: PlacementResult) -> dict[str, Any]:
    """The plan as a JSON-ready document: totals, then jobs with their executors.

    Raises:
        ConfigError: Not all jobs were placed.
    """
    table = plan_frame(result)
    jobs = []
    for number, rows in table.groupby("job", sort=False):
        first = rows.iloc[0]
        jobs.append(
            {name: first[name] for name in ("submit_s", "start_s", "finish_s", "well_placed", "job_cost")}
            | {
                "job": number,
                "executors": rows["vm"].tolist(),
                "cores": first["cores"],
                "memory_gb": first["memory_gb"],
            }
        )
    return result.as_dict() | {"jobs": jobs}
