"""Small tidy frames with numbers that can be checked by head; tables of experiments are in `experiments/kept.py`."""

import numpy as np
import pandas


def texts(labels):
    """Texts of labels of ticks, of a legend, or of axes."""
    return [label.get_text() for label in labels]


def legend(axes):
    """Texts of a legend."""
    return texts(axes.get_legend().get_texts())


def line(axes, label):
    """The line that a legend calls so."""
    (found,) = [each for each in axes.lines if each.get_label() == label]
    return found


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


def series(schedulers=("fair", "capped_srw"), step_s=60.0):
    rows = [(name, 0, step * step_s, step % 3) for name in schedulers for step in range(20)]
    return pandas.DataFrame(rows, columns=["scheduler", "seed", "time_s", "active_jobs"])


def optimality():
    rows = [
        (batch, policy, ratio * (20.0 + 5.0 * batch))
        for batch in range(3)
        for policy, ratio in (("exhaustive", 1.0), ("sjf_cp", 1.25), ("fair", 1.5))
    ]
    return pandas.DataFrame(rows, columns=["batch", "policy", "avg_jct_s"])


def bounds(arrivals="batch"):
    rows = [
        (arrivals, instance, policy, ratio * (30.0 - instance))
        for instance in range(3)
        for policy, ratio in (("fair", 1.5), ("capped_srw", 1.2), ("search", 1.0), ("lower_bound", 0.6))
    ]
    return pandas.DataFrame(rows, columns=["arrivals", "instance", "policy", "avg_jct_s"])


def variance():
    """Three sequences that part after 20 s; in the second most jobs wait, in the third fewest."""
    returns = [
        (10.0 * step, 2 if step <= 2 else int(jobs) + rollout, 10.0 * jobs * (step - 6) - rollout, sequence, rollout)
        for sequence, jobs in enumerate((2.0, 4.0, 1.0))
        for rollout in range(2)
        for step in range(7)
    ]
    arrivals = [(sequence, 5.0 * k + sequence * (k > 4), 100.0 + k) for sequence in range(3) for k in range(10)]
    explained = [(10.0 * step, 100.0 - 10 * step, 12.0 - 2 * step, 0.9, int(step > 2)) for step in range(7)]
    return {
        "variance_arrivals": pandas.DataFrame(arrivals, columns=["sequence", "arrival_s", "work_s"]),
        "variance_returns": pandas.DataFrame(
            returns, columns=["time_s", "active_jobs", "return_s", "sequence", "rollout"]
        ),
        "variance_explained": pandas.DataFrame(
            explained, columns=["time_s", "time_baseline_s", "input_baseline_s", "share", "parted"]
        ),
    }


def stream_jobs(schedulers=("fair", "capped_srw")):
    rows = [
        (name, 0, job, f"job{job}", 10.0 * job, 5.0 * (job + 1.0), 2.0 * (job + 1.0) + place)
        for place, name in enumerate(schedulers)
        for job in range(30)
    ]
    return pandas.DataFrame(rows, columns=["scheduler", "seed", "job", "name", "arrival_s", "work_s", "jct_s"])


def executed(schedulers=("weighted_fair", "decima")):
    """Decima takes 10 % more executor time for every job."""
    rows = [
        (name, 0, job, 2.0 * (job + 1.0) * (1.1 if name == "decima" else 1.0), 5.0 + place)
        for place, name in enumerate(schedulers)
        for job in range(30)
    ]
    return pandas.DataFrame(rows, columns=["scheduler", "seed", "job", "executed_s", "executors"])
