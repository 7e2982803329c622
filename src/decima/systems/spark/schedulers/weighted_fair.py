"""Weighted fair sharing: shares proportional to a power of the jobs' total work.

Source: §7.1 (4) and (5): job i gets T_i^alpha / sum T^alpha of the executors. alpha = 0 is fair, 1 is naive weighted
fair; the tuned alpha comes from :func:`.alpha_sweep`. The paper does not say which of the jobs
below their share is served first, nor whether shares are strict: the preset ``paper`` serves by arrival and lets
executors stay with their job. The default has strict shares and serves small jobs first.
"""

from decima.core.decision import CompiledDecision, Parameter, places
from decima.systems.spark.fields import state_at
from decima.systems.spark.schedulers.class_sharing import set_weighted_shares
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.schedulers.registry import BATCH, STREAM, Preset, register
from decima.systems.spark.schedulers.sharing import LEFTOVER, STAGE_RULE, STRICT, share_executors

ORDER = Parameter("order", 0, 0, 1, "jobs below their share are served 0: by arrival, 1: by total work, smallest first")
ALPHA = Parameter("alpha", -1.0, -5.0, 5.0, "exponent of a job's total work", tunable=True)


PARAMETERS = (ALPHA, STRICT, STAGE_RULE, LEFTOVER, ORDER)
P = places(PARAMETERS)
# The exponents lose least on the worse of two workloads, TPC-H and embedded; docs/scheduler-presets.md has the numbers.
_BEST = {"sticky": 0.0, "order": 1.0}
PRESETS = (
    Preset(
        BATCH, "strict shares, small jobs first; default where all jobs are there at the start", _BEST | {"alpha": -0.7}
    ),
    Preset(STREAM, "strict shares, small jobs first; default where jobs arrive over time", _BEST | {"alpha": 0.1}),
    Preset(
        "paper",
        "a reading of §7.1: jobs are served by arrival, executors stay with their job",
        {"sticky": 1.0, "order": 0.0, "alpha": -1.0},
    ),
)


@CompiledDecision.reading(PARAMETERS)
def _weighted_fair(address):
    state = state_at(address)
    params = rule_of(state).params
    set_weighted_shares(state, params[P.alpha], params[P.order], False)
    share_executors(state, 1e9 * params[P.sticky], int(params[P.stage_rule]), int(params[P.leftover]))


@register("weighted_fair", presets=PRESETS)
def weighted_fair(**values) -> CompiledScheduler:
    """Shares proportional to (total work)^alpha."""
    return CompiledScheduler("weighted_fair", _weighted_fair, values)


@register("naive_weighted_fair")
def naive_weighted_fair(**values) -> CompiledScheduler:
    """Shares proportional to total work (alpha = 1)."""
    return CompiledScheduler("naive_weighted_fair", _weighted_fair, {"alpha": 1.0} | values)
