"""Time and memory of heuristics on the Alibaba trace, jobs and executors growing together, up to 20,000 jobs with DAGs.

Parts of the hour's 15,478 jobs with executors thinned alike, the whole hour on 30,000 executors in four classes, and
20,000 jobs generated after its statistics, which arrive at the same rate for longer. Run from the checkout:
``python -m benchmarks.trace_scale``. Every run has a process of its own, whose peak memory is measured. Writes
``benchmarks/results/trace_scale.csv``.
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import pandas
from tqdm.auto import tqdm

EXECUTORS = 30_000
FRACTIONS = (0.1, 0.5, 1.0)
GENERATED = 20_000
HEURISTICS = ("fair", "graphene")
RESULTS = Path(__file__).parent / "results"


def measure(scheduler: str, jobs: str, executors: int) -> dict:
    """One run in this process: CPU seconds of making the jobs and of the run, peak memory of both."""
    from decima.evaluation.run import simulate
    from decima.systems.spark.settings import Settings
    from decima.workload.sources import parse_jobs
    from experiments.decima.s07_packing import classes

    small = Settings.of_mode("paper", classes=classes(8))
    simulate(parse_jobs("alibaba_like:jobs=20").workload(0), scheduler, cluster=small)  # compile
    start = time.process_time()
    workload = parse_jobs(jobs).workload(0)
    made = time.process_time()
    result = simulate(workload, scheduler, cluster=Settings.of_mode("paper", classes=classes(executors)))
    return {
        "jobs": len(workload),
        "workload": workload.label,
        "executors": executors,
        "scheduler": scheduler,
        "tasks": int(sum(stage.num_tasks for job in workload.jobs for stage in job.profile.stages)),
        "make_cpu_s": made - start,
        "run_cpu_s": time.process_time() - made,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
        "avg_jct_s": result.avg_jct_s,
    }


def main() -> None:
    sizes = [(f"alibaba:fraction={part}", round(EXECUTORS * part)) for part in FRACTIONS]
    sizes.append((f"alibaba_like:jobs={GENERATED}", EXECUTORS))
    rows = []
    for jobs, executors in tqdm(sizes):
        for scheduler in HEURISTICS:
            call = [sys.executable, "-m", "benchmarks.trace_scale", scheduler, jobs, str(executors)]
            rows.append(json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout))
    table = pandas.DataFrame(rows).round({"make_cpu_s": 2, "run_cpu_s": 2, "peak_mb": 0, "avg_jct_s": 2})
    RESULTS.mkdir(exist_ok=True)
    table.to_csv(RESULTS / "trace_scale.csv", index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
    else:
        main()
