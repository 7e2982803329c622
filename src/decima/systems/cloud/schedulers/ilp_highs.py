"""The per-job integer program on HiGHS, as written in the paper: the yardstick of the compiled enumeration.

Source: Islam et al., section 7, and ``ILPScheduler.java`` of ``tawfiqul-islam/RM-Simulator``; see
:mod:`decima.systems.cloud.schedulers.ilp` for the reading. Executors are alike, so that y is a count per VM.
"""

from __future__ import annotations

import numpy as np

from decima.core.checks import is_number
from decima.core.errors import ConfigError, SchedulerError
from decima.systems.cloud.schedulers.view import View

# What scipy says when the time was over.
_TIME_LIMIT = 1


class HighsProgram:
    """Scheduler that solves minimise sum x_i price_i time_i, y_i executors on VM i, by SciPy's HiGHS.

    Args:
        limit_s: Longest time for one job.

    Raises:
        ConfigError: The limit is out of range.
    """

    name = "ilp_highs"
    concurrent = True
    draws = False

    def __init__(self, limit_s: float = 60.0) -> None:
        if not is_number(limit_s) or not 0.0 < limit_s <= 1e6:
            raise ConfigError(f"scheduler ilp_highs: limit_s is {limit_s!r}; expected seconds above 0, up to 1e+06")
        self.values = {"limit_s": float(limit_s)}

    def place(self, view: View) -> list[int] | None:
        """Solve the program of the job that is shown.

        Raises:
            SchedulerError: HiGHS found no proven optimum within the limit.
        """
        if not view.fits:
            return None
        counts, _ = solve(view, self.values["limit_s"])
        return [vm for vm, count in enumerate(counts) for _ in range(count)]


def solve(view: View, limit_s: float) -> tuple[np.ndarray, float]:
    """Executors per VM, int64 [VMs], and the cost that they add.

    Raises:
        SchedulerError: HiGHS found no proven optimum within the limit.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    job, vms = view.job, len(view.settings.cluster)
    costs, ones, zeros = view.added_cost(job.duration_s), np.eye(vms), np.zeros((vms, vms))
    # Variables: x_i, whether VM i is used, and y_i, its executors.
    rows = np.vstack(
        [
            np.hstack([-np.diag(view.free_cores.astype(float)), job.cores * ones]),
            np.hstack([-np.diag(view.free_memory_mib.astype(float)), job.memory_mib * ones]),
        ]
    )
    all_placed = np.hstack([zeros[:1], np.ones((1, vms))])
    found = milp(
        np.concatenate([costs, np.zeros(vms)]),
        constraints=[
            LinearConstraint(rows, -np.inf, 0.0),
            LinearConstraint(all_placed, job.executors, job.executors),
        ],
        integrality=np.ones(2 * vms),
        bounds=Bounds(0.0, np.concatenate([np.ones(vms), np.full(vms, float(job.executors))])),
        options={"time_limit": limit_s},
    )
    if found.status != 0:
        reason = f"no proven optimum within limit_s={limit_s:g}" if found.status == _TIME_LIMIT else found.message
        raise SchedulerError(f"scheduler ilp_highs, job {job.id}: {reason}")
    return np.round(found.x[vms:]).astype(np.int64), float(found.fun)
