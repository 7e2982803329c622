import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.evaluation.run import simulate
from decima.systems.spark.alpha import ALL_VARIANTS, alpha_sweep
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload import synthetic_batch

SETTINGS = Settings(executors=10)
WORKLOADS = [synthetic_batch(4, seed=seed) for seed in range(3)]


def test_sweep():
    sweep = alpha_sweep(WORKLOADS, SETTINGS, (-1.0, 0.0, 1.5), ALL_VARIANTS, seeds=[7, 8, 9], workers=2)
    assert list(sweep.table.columns) == ["alpha", "sticky", "stage_rule", "order", "seed", "avg_jct_s"]
    assert len(sweep.table) == 3 * 8 * 3
    row = sweep.table.query("alpha == 1.5 and sticky == 0 and stage_rule == 1 and seed == 8").iloc[0]
    scheduler = make_scheduler("weighted_fair:paper", alpha=1.5, sticky=0, stage_rule=1)
    assert row.avg_jct_s == simulate(WORKLOADS[1], scheduler, 10, 8).avg_jct_s
    row = sweep.table.query("alpha == -1 and sticky == 1 and stage_rule == 0 and order == 1 and seed == 9").iloc[0]
    scheduler = make_scheduler("weighted_fair:paper", alpha=-1.0, order=1)
    assert row.avg_jct_s == simulate(WORKLOADS[2], scheduler, 10, 9).avg_jct_s

    curve = sweep.curve()
    assert len(curve) == 24
    best = sweep.best()
    chosen = curve.loc[curve.avg_jct_s.idxmin()]
    assert {name: chosen[name] for name in best} == best
    assert sweep.scheduler().values.items() >= best.items()

    each = sweep.per_workload()
    assert list(each.seed) == [7, 8, 9]
    assert np.array_equal(each.avg_jct_s, [sweep.table.query("seed == @s").avg_jct_s.min() for s in each.seed])
    assert each.avg_jct_s.mean() <= curve.avg_jct_s.min()


def test_order_is_arrival_when_left_out():
    pairs = alpha_sweep(WORKLOADS[:1], SETTINGS, (-1.0,), ((0, 2),))
    assert pairs.table.order.tolist() == [0]
    assert pairs.table.equals(alpha_sweep(WORKLOADS[:1], SETTINGS, (-1.0,), ((0, 2, 0),), workers=1).table)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], SETTINGS), "no workload"),
        ((WORKLOADS, SETTINGS, ()), "no alpha or no variant"),
        ((WORKLOADS, SETTINGS, (1.0,), ()), "no alpha or no variant"),
        ((WORKLOADS, SETTINGS, (1.0, 1.0)), "given twice"),
        ((WORKLOADS, SETTINGS, (9.0,)), "alpha must be from"),
        ((WORKLOADS, SETTINGS, (1.0,), ((1, 0),), [1, 1, 2]), "seed is given twice"),
        ((WORKLOADS, SETTINGS, (1.0,), ((1, 0),), [1]), "1 seeds for 3 workloads"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ConfigError, match=message):
        alpha_sweep(*arguments)
