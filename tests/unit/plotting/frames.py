"""Small tidy frames, one of every table that figures are drawn from."""

import itertools

import numpy as np
import pandas

from experiments.decima.s07_real_spark import changes as real_changes


def legend(axes):
    """Texts of a legend."""
    return [text.get_text() for text in axes.get_legend().get_texts()]


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


def changes():
    rows = [("fair", "decima", 5, -20.0, -25.0, -15.0), ("capped_srw", "decima", 5, 1.0, -1.0, 3.0)]
    return pandas.DataFrame(rows, columns=["against", "scheduler", "seeds", "change_percent", "low", "high"])


def executed(schedulers=("weighted_fair", "decima")):
    """Decima takes 10 % more executor time for every job."""
    rows = [
        (name, 0, job, 2.0 * (job + 1.0) * (1.1 if name == "decima" else 1.0), 5.0 + place)
        for place, name in enumerate(schedulers)
        for job in range(30)
    ]
    return pandas.DataFrame(rows, columns=["scheduler", "seed", "job", "executed_s", "executors"])


def policy():
    """Two jobs of four stages, the second without its first stage; embeddings of width 3."""
    stage_rows = [
        (job, name, stage, 10, 10 if (job, stage) != (1, 0) else 0, 0.1 * (stage + 1), int((job, stage) == (1, 0)))
        for job, name in enumerate(("q9-100g", "q2-2g"))
        for stage in range(4)
    ]
    columns = ["job", "name", "stage", "tasks", "unfinished", "duration_s", "finished"]
    levels = {0: 2, 1: 2, 2: 1, 3: 0}
    nodes = [(job, stage, levels[stage]) for job in (0, 1) for stage in range(4) if (job, stage) != (1, 0)]
    values = np.linspace(-1.0, 1.0, len(nodes) * 8).reshape(len(nodes), 8)
    names = [f"x{k}" for k in range(5)] + [f"e{k}" for k in range(3)]
    node_table = pandas.concat(
        [pandas.DataFrame(nodes, columns=["job", "stage", "level"]), pandas.DataFrame(values, columns=names)], axis=1
    )
    limits = pandas.DataFrame({"limit": range(5, 11), "w": np.arange(6.0), "used": [1, 2, 3, 3, 3, 3]})
    return {
        "policy_stages": pandas.DataFrame(stage_rows, columns=columns),
        "policy_edges": pandas.DataFrame(
            [(job, *edge) for job in (0, 1) for edge in ((0, 2), (1, 2), (2, 3))], columns=["job", "parent", "child"]
        ),
        "policy_nodes": node_table,
        "policy_summaries": pandas.DataFrame(np.eye(3), columns=["v0", "v1", "v2"]).assign(job=[0, 1, -1]),
        "policy_candidates": pandas.DataFrame(
            [(0, 0, -0.5, 0.2, 0), (0, 1, 0.1, 0.3, 0), (1, 1, 0.4, 0.5, 1)],
            columns=["job", "stage", "q", "probability", "chosen"],
        ),
        "policy_limits": limits.assign(probability=[0.05, 0.05, 0.1, 0.2, 0.3, 0.3]),
    }


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


def latency():
    times = np.repeat(np.arange(10.0), 2)
    decisions = pandas.DataFrame({"time_s": times, "active_jobs": 3, "frontier": 2, "latency_ms": 0.1 + 0.01 * times})
    by_jobs = [(jobs, jobs, 0.01 * jobs * (1 + place)) for jobs in (1, 10, 100) for place in range(5)]
    return {
        "latency": decisions,
        "latency_jobs": pandas.DataFrame(by_jobs, columns=["jobs", "active_jobs", "latency_ms"]),
    }


def learning():
    """Curves of all settings: the recipe with two seeds, which ends at 40 s, and one variant, which ends at 50 s."""
    runs, curves, budgets = [], [], []
    settings = [f"{source}-{use}" for use in ("batch", "stream") for source in ("tpch", "embedded")]
    settings += ["tpch-batch-random", "tpch-stream-random"]
    for setting in settings:
        for recipe, variant, seed in (("fast", "recipe", 0), ("fast", "recipe", 1), ("fast", "limit per stage", 0)):
            end = 40.0 if variant == "recipe" else 50.0
            about = (f"{setting}-{variant}-{seed}", setting, recipe, variant, seed)
            stored = setting if (variant, seed) == ("recipe", 0) else ""
            runs.append((*about, stored))
            for step in range(5):
                scores = (end + 40 - 10 * step, end + 42 - 10 * step)
                curves.append((*about, 10 * step, 60.0 * step, 200.0 * step, *scores))
            budgets += [(*about, minutes, end, end - 50.0 - minutes) for minutes in (3, 15)]
    about = ["run", "setting", "recipe", "variant", "seed"]
    references = [
        (setting, name, value)
        for setting in settings
        for name, value in (("fair", 60.0), ("weighted_fair", 50.0), ("capped_srw", 45.0))
    ]
    measured = ["iteration", "wall_s", "cpu_s", "val_greedy", "val_sampled"]
    return {
        "learning_runs": pandas.DataFrame(runs, columns=[*about, "stored_as"]),
        "learning_curves": pandas.DataFrame(curves, columns=[*about, *measured]),
        "learning_budgets": pandas.DataFrame(budgets, columns=[*about, "budget_min", "best_s", "change_percent"]),
        "learning_references": pandas.DataFrame(references, columns=["setting", "scheduler", "avg_jct_s"]),
    }


def measured():
    """Three waves on one to four executors, modelled to 100; two queries at three sizes."""
    slow = []
    for wave in ("fresh", "first", "rest"):
        for source, levels in (("measured", (1, 2, 4)), ("model", (1, 10, 100)), ("authors", (5, 20, 100))):
            slow += [(wave, source, level, level**0.3, level**0.25, level**0.35) for level in levels]
    held = [
        (what, value, wave, form, 5.0 * (1 + (form != "model")))
        for what, value in (("executors", 4), ("input size", 0.5))
        for wave in ("first", "rest")
        for form in ("model", "no effect")
    ]
    jobs = [
        (source, query, size, 10.0 * size * query, 20.0 * size)
        for source, size in (("measured", 0.5), ("extrapolated", 100.0), ("authors", 100.0))
        for query in (1, 22)
    ]
    residuals = [(wave, 0.01 * place) for wave in ("first", "rest") for place in range(-9, 10)]
    return {
        "measured_slowdown": pandas.DataFrame(slow, columns=["wave", "source", "level", "slowdown", "low", "high"]),
        "measured_holdout": pandas.DataFrame(held, columns=["held_out", "value", "wave", "form", "error_percent"]),
        "measured_residuals": pandas.DataFrame(residuals, columns=["wave", "residual"]),
        "measured_jobs": pandas.DataFrame(jobs, columns=["source", "query", "size_gb", "work_s", "tasks"]),
    }


def fidelity():
    """Two queries alone on one and four executors, the same on new executors, and two mixes."""
    runs, floor = [], []
    for setting, profile in (("alone", "held out"), ("alone, new executors", "held out"), ("mix", "alone")):
        for query, executors, repetition in itertools.product((1, 22), (1, 4), range(2)):
            if setting == "mix" and executors == 1:
                continue
            key = (setting, f"q{query}-0.25g", executors, repetition, "spark_fifo", setting != "mix")
            real_s = (3.0 + query) / executors
            for variant, factor in (("all effects", 1.02), ("no first-wave slowdown", 0.9 - 0.01 * repetition)):
                runs.append((*key, variant, profile, real_s, factor * real_s, 0.1, factor - 1.0))
            floor.append((*key[:-1], True, real_s, 1.01 * real_s, 0.01))
    columns = ["setting", "name", "executors", "repetition", "scheduler", "bound"]
    runs = pandas.DataFrame(
        runs, columns=[*columns, "variant", "profile", "real_s", "simulated_s", "simulated_sd_s", "error"]
    )
    floor = pandas.DataFrame(floor, columns=[*columns, "real_s", "others_s", "error"])
    both = pandas.concat([runs, floor.assign(variant="other real repetitions", profile="other real repetitions")])
    group = both.assign(size=100.0 * both["error"].abs(), error=100.0 * both["error"]).groupby(
        ["setting", "scheduler", "bound", "profile", "variant"], sort=False
    )
    summary = group.agg(
        runs=("size", "size"),
        mean_percent=("size", "mean"),
        p95_percent=("size", "max"),
        bias_percent=("error", "mean"),
    )
    return {
        "fidelity_runs": runs,
        "fidelity_floor": floor,
        "fidelity_summary": summary.reset_index().assign(simulations=5),
    }


def real_spark():
    """Two queries under three schedulers, two runs each; the control was not simulated."""
    simulated = ["simulated", "simulated (warm-up)"]
    names = {"real Spark": ["spark_fifo", "fifo", "fair"]} | {where: ["fifo", "fair"] for where in simulated}
    rows = [
        (where, 0, repetition, name, 10.0 - place + repetition, 20.0 + repetition)
        for where, schedulers in names.items()
        for place, name in enumerate(schedulers)
        for repetition in range(2)
    ]
    runs = pandas.DataFrame(rows, columns=["where", "batch", "repetition", "scheduler", "avg_jct_s", "makespan_s"])
    charts = [tasks(schedulers).assign(where=where) for where, schedulers in list(names.items())[:2]]
    jobs = [(where, 0, name, job, 3.0 + job, 2.5) for where in simulated for name in ("fifo", "fair") for job in (0, 1)]
    return {
        "real_spark": runs,
        "real_spark_changes": real_changes(runs),
        "real_spark_tasks": pandas.concat(charts).replace({"job_name": {"q9-100g": "q09", "q2-2g": "q02"}}),
        "real_spark_jobs": pandas.DataFrame(
            jobs, columns=["where", "batch", "scheduler", "job", "real_s", "simulated_s"]
        ),
        "real_spark_plan": pandas.DataFrame(
            [{"scale": 0.5, "executors": 2, "queries": 2, "batches": 1, "repetitions": 2, "shown_batch": 0, "seeds": 5}]
        ),
    }


def both_gaps(make):
    return pandas.concat([make().assign(interarrival_s=gap) for gap in (25, 45)])


def tables():
    """Every table by name."""
    return {
        "fig01_stages": stages(),
        "fig01_edges": edges(),
        "fig02_parallelism": runtimes(),
        "fig03_tasks": tasks(("fifo", "sjf_cp", "fair", "decima")),
        "fig03_summary": scores(),
        "effects": effects(),
        "switches": switches(),
        "waves": waves(),
        "batch": scores(("fifo", "fair", "weighted_fair", "capped_srw", "decima", "decima_sampled")),
        "batch_changes": changes(),
        "alpha_batch": sweep(),
        "stream": both_gaps(scores),
        "stream_changes": both_gaps(changes),
        "stream_jobs": both_gaps(lambda: stream_jobs(("fair", "weighted_fair", "decima"))),
        "stream_series": both_gaps(lambda: series(("fair", "weighted_fair", "decima"))),
        "stream_executed": both_gaps(executed),
        "alpha_stream": both_gaps(sweep),
        "alpha_training": pandas.concat([sweep().assign(arrivals=kind) for kind in ("batch", "stream-25s")]),
        "released": pandas.concat([scores(arrivals=kind) for kind in ("batch, six sizes", "stream, seven sizes")]),
        "bounds": pandas.concat([bounds(), bounds("stream")]),
        "appendix_a_tasks": example_tasks(),
        "appendix_a": example_summary(),
        "appendix_e": accuracy(),
        "appendix_e_graphs": random_graphs(),
        "appendix_h": optimality(),
        **policy(),
        **variance(),
        **measured(),
        **fidelity(),
        **real_spark(),
        **latency(),
        **learning(),
    }
