"""Small tidy frames, one of every table that figures are drawn from."""

import numpy as np
import pandas


def stages(jobs=("q9-100g", "q2-2g")):
    rows = [(job, stage, tasks, 0.05 * (stage + 1)) for job in jobs for stage, tasks in enumerate((4, 10, 1, 3))]
    return pandas.DataFrame(rows, columns=["job", "stage", "tasks", "duration_s"])


def edges(jobs=("q9-100g", "q2-2g")):
    rows = [(job, parent, child) for job in jobs for parent, child in ((0, 2), (1, 2), (2, 3))]
    return pandas.DataFrame(rows, columns=["job", "parent", "child"])


def runtimes():
    rows = [
        (job, executors, seed, work / executors + executors * 0.1 + seed)
        for job, work in (("q9-100g", 100.0), ("q2-2g", 20.0))
        for executors in (1, 10, 50)
        for seed in range(3)
    ]
    return pandas.DataFrame(rows, columns=["job", "executors", "seed", "runtime_s"])


def tasks(schedulers=("fair", "fifo")):
    """Two jobs on two executors: job 0 ends at 3 s (fair) or 2 s (fifo), job 1 at 4 s."""
    rows = []
    for name in schedulers:
        end = 3.0 if name == "fair" else 2.0
        rows += [
            (name, 0, "q9-100g", 0, 0, 0.0, 1.0),
            (name, 0, "q9-100g", 0, 0, 1.0, end),
            (name, 1, "q2-2g", 0, 1, 0.5, 2.0),
            (name, 1, "q2-2g", 1, 1, 3.0, 4.0),
        ]
    columns = ["scheduler", "job", "job_name", "stage", "executor", "start_s", "finish_s"]
    return pandas.DataFrame(rows, columns=columns)


def scores(schedulers=("fifo", "fair", "capped_srw"), seeds=5, **columns):
    rows = [(name, seed, 100.0 / (place + 1) + seed) for place, name in enumerate(schedulers) for seed in range(seeds)]
    return pandas.DataFrame(rows, columns=["scheduler", "seed", "avg_jct_s"]).assign(**columns)


def effects():
    names = {"all effects": 1.0, "no first-wave slowdown": 0.9, "none of the three": 0.5}
    return pandas.concat(
        [scores(setting=name).assign(avg_jct_s=lambda t, f=f: f * t["avg_jct_s"]) for name, f in names.items()]
    )


def switches():
    parts = [("released", "none"), ("released", "reoffer"), ("paper", "none"), ("paper", "runnable_only")]
    return pandas.concat(
        [
            scores(base=base, switch=switch, arrivals=arrivals)
            for base, switch in parts
            for arrivals in ("batch", "stream")
        ]
    )


def waves():
    """Fresh waves take 3 times, first waves twice as long as later ones; level 20 takes 1.5 times level 5."""
    rows = [
        ("q9-100g", stage, level, wave, factor * (1.0 + stage) * (1.0 if level == 5 else 1.5))
        for stage in range(4)
        for level in (5, 20)
        for wave, factor in (("fresh", 3.0), ("first", 2.0), ("rest", 1.0))
    ]
    return pandas.DataFrame(rows, columns=["job", "stage", "level", "wave", "duration_s"])


def sweep():
    """Best at alpha -1 with sticky shares for every seed."""
    rows = [
        (alpha, sticky, rule, 0, seed, 50.0 + (alpha + 1.0) ** 2 + seed + 3.0 * (1 - sticky) + rule)
        for alpha in np.round(np.arange(-2.0, 2.01, 0.5), 1)
        for sticky in (0, 1)
        for rule in (0, 1)
        for seed in range(4)
    ]
    return pandas.DataFrame(rows, columns=["alpha", "sticky", "stage_rule", "order", "seed", "avg_jct_s"])


def stream_jobs(schedulers=("fair", "capped_srw")):
    rows = [
        (name, 0, job, f"job{job}", 10.0 * job, 5.0 * (job + 1.0), 2.0 * (job + 1.0) + place)
        for place, name in enumerate(schedulers)
        for job in range(30)
    ]
    return pandas.DataFrame(rows, columns=["scheduler", "seed", "job", "name", "arrival_s", "work_s", "jct_s"])


def series(schedulers=("fair", "capped_srw"), step_s=60.0):
    rows = [(name, 0, step * step_s, step % 3) for name in schedulers for step in range(20)]
    return pandas.DataFrame(rows, columns=["scheduler", "seed", "time_s", "active_jobs"])


def example_tasks():
    rows = [
        (case, 0, stage, executor, start, start + length)
        for case, shift in (("critical_path", 5.0), ("optimal", 0.0))
        for stage, executor, start, length in ((0, 0, 0.0, 2.0), (1, 1, 0.0, 1.0), (2, 0, 2.0 + shift, 3.0))
    ]
    return pandas.DataFrame(rows, columns=["case", "job", "stage", "executor", "start_s", "finish_s"])


def example_summary():
    rows = [("critical_path", 0.2, 10.0, 28.6), ("optimal", 0.2, 5.0, 20.6)]
    return pandas.DataFrame(rows, columns=["policy", "epsilon_s", "makespan_s", "paper_s"])


def optimality():
    rows = [
        (batch, policy, ratio * (20.0 + 5.0 * batch))
        for batch in range(3)
        for policy, ratio in (("exhaustive", 1.0), ("sjf_cp", 1.25), ("fair", 1.5))
    ]
    return pandas.DataFrame(rows, columns=["batch", "policy", "avg_jct_s"])


def accuracy(schemes=("two_level", "one_level", "one_level_perceptron")):
    rows = [
        (scheme, seed, iteration, min(0.9 - 0.2 * place, 0.01 * (iteration + seed)), 0.1)
        for place, scheme in enumerate(schemes)
        for seed in range(3)
        for iteration in range(0, 101, 20)
    ]
    return pandas.DataFrame(rows, columns=["scheme", "seed", "iteration", "accuracy", "squared_error"])


def random_graphs():
    return pandas.DataFrame([{"test_graphs": 500, "graphs_per_iteration": 128, "stages": 10, "guess_accuracy": 0.3}])


def bounds(arrivals="batch"):
    rows = [
        (arrivals, instance, policy, ratio * (30.0 - instance))
        for instance in range(3)
        for policy, ratio in (("fair", 1.5), ("capped_srw", 1.2), ("search", 1.0), ("lower_bound", 0.6))
    ]
    return pandas.DataFrame(rows, columns=["arrivals", "instance", "policy", "avg_jct_s"])


def both_gaps(make):
    return pandas.concat([make().assign(interarrival_s=gap) for gap in (25, 45)])


def tables():
    """Every table by name."""
    return {
        "fig01_stages": stages(),
        "fig01_edges": edges(),
        "fig02_parallelism": runtimes(),
        "fig03_tasks": tasks(("fifo", "sjf_cp", "fair")),
        "fig03_summary": scores(),
        "effects": effects(),
        "switches": switches(),
        "waves": waves(),
        "batch": scores(),
        "alpha_batch": sweep(),
        "stream": both_gaps(scores),
        "stream_jobs": both_gaps(stream_jobs),
        "stream_series": both_gaps(series),
        "alpha_stream": both_gaps(sweep),
        "alpha_training": pandas.concat([sweep().assign(arrivals=kind) for kind in ("batch", "stream-25s")]),
        "released": pandas.concat([scores(arrivals=kind) for kind in ("batch, six sizes", "stream, seven sizes")]),
        "bounds": pandas.concat([bounds(), bounds("stream")]),
        "appendix_a_tasks": example_tasks(),
        "appendix_a": example_summary(),
        "appendix_e": accuracy(),
        "appendix_e_graphs": random_graphs(),
        "appendix_h": optimality(),
    }
