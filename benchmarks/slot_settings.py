"""Effect of the settings of deliberate idle slots on the average JCT.

Run from the checkout: ``python -m benchmarks.slot_settings --seeds 20``. Writes
``benchmarks/results/slot_settings.csv`` and prints it: changes in % against the defaults, paired by seed, with
95 % intervals.

The scheduler is ``capped_srw`` in its plain form. A share of the stages that it chooses and that may be delayed,
``--share``, is delayed by a uniform part of the nominal task duration. ``job_bound`` is measured without delays
as well.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import pandas
from tqdm.auto import tqdm

from decima.evaluation.statistics import paired_change
from decima.systems.spark.result import Result
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.interface import StageView
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import new_state
from decima.systems.spark.system import run_state
from decima.workload import embedded_batch, embedded_poisson
from decima.workload.sources import parse_jobs

WORKLOADS = {
    "batch": (20, lambda seed: embedded_batch(20, seed)),
    "stream": (20, lambda seed: embedded_poisson(100, 12.0, seed)),
    "rare-long": (2, parse_jobs("two_class:long_s=200,short_s=10,share=0.1,n=300,load=0.6,executors=2").workload),
}
#: Name of a row -> share of the stages that are delayed (None: as asked for), changes of the settings.
ROWS = {
    "defaults": (None, {}),
    "no delays": (0.0, {}),
    "job_bound": (None, {"job_bound": True}),
    "job_bound, no delays": (0.0, {"job_bound": True}),
}
RESULTS = Path(__file__).parent / "results"


class Waiting:
    """``capped_srw`` that delays some of the stages it chooses.

    Args:
        share: Chance that a stage which may be delayed is.
    """

    name = "waiting"

    def __init__(self, share):
        self._inner = make_scheduler("capped_srw", preset="plain")
        self._share = share

    def reset(self, rng):
        self._inner.reset(rng)
        self._rng = rng

    def decide(self, observation):
        decision = self._inner.decide(observation)
        stage = None if decision.stage is None else StageView(observation.state, decision.stage)
        if stage is None or self._share == 0.0 or not stage.delayable or self._rng.random() >= self._share:
            return decision
        return replace(decision, delay_ms=self._rng.random() * stage.mean_duration_ms)


def measure(kind: str, mode: str, name: str, share: float, seed: int) -> dict:
    """Average JCT, idle time and number of slots of one run."""
    executors, make = WORKLOADS[kind]
    own, changes = ROWS[name]
    settings = Settings.of_mode(mode, executors=executors, **changes)
    workload = make(seed)
    state = new_state(workload, settings, log_tasks=True, log_decisions=True)
    run_state(state, Waiting(share if own is None else own), seed)
    result = Result.of_state(state, workload, name, seed)
    return {
        "workload": kind,
        "mode": mode,
        "setting": name,
        "seed": seed,
        "avg_jct_s": result.avg_jct_s,
        "deliberate_s": result.idle_time().deliberate_s,
        "slots": len(result.log.delays()),
    }


def table(runs: pandas.DataFrame) -> pandas.DataFrame:
    """One row per workload, mode and setting: mean JCT, change against the defaults without and with delays."""
    rows = []
    for (kind, mode), group in runs.groupby(["workload", "mode"], sort=False):
        scores = {name: rows_of.avg_jct_s.to_numpy() for name, rows_of in group.groupby("setting", sort=False)}
        for name, values in scores.items():
            base = "no delays" if name.endswith("no delays") else "defaults"
            change, low, high = paired_change(values, scores[base])
            part = group[group.setting == name]
            rows.append(
                {
                    "workload": kind,
                    "mode": mode,
                    "setting": name,
                    "against": base,
                    "seeds": len(values),
                    "avg_jct_s": values.mean(),
                    "change_percent": change,
                    "low": low,
                    "high": high,
                    "slots": part.slots.mean(),
                    "deliberate_s": part.deliberate_s.mean(),
                }
            )
    return pandas.DataFrame(rows)


def main() -> None:
    """Measure all rows and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="runs per row")
    parser.add_argument("--share", type=float, default=0.3, help="chance that a stage which may be delayed is")
    parser.add_argument("--workloads", nargs="*", default=list(WORKLOADS), choices=list(WORKLOADS))
    options = parser.parse_args()
    cases = [
        (kind, mode, name, options.share, seed)
        for kind in options.workloads
        for mode in ("paper", "released")
        for name in ROWS
        for seed in range(options.seeds)
    ]
    runs = pandas.DataFrame([measure(*case) for case in tqdm(cases, disable=None)])
    found = table(runs)
    RESULTS.mkdir(exist_ok=True)
    found.to_csv(RESULTS / "slot_settings.csv", index=False, float_format="%.4f")
    print(found.to_string(index=False, float_format=lambda value: f"{value:.2f}"))


if __name__ == "__main__":
    main()
