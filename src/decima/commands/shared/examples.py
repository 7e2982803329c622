"""An example of every command, at the end of its help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# By the words behind ``decima``; of the commands of a checkout by the last one.
EXAMPLES = {
    "simulate": "simulate --jobs embedded:n=20 --scheduler fair --gantt schedule.html",
    "simulate --system heterogeneous": "simulate --system heterogeneous --scheduler heft --jobs canonical",
    "simulate --system cloud": "simulate --system cloud --scheduler aep --jobs generated --gantt vms.png",
    "compare": "compare fair weighted_fair decima --jobs embedded:n=20 --executors 50",
    "compare --system heterogeneous": "compare --system heterogeneous heft lachesis --jobs embedded:n=20 --edges ccr=5",
    "compare --system cloud": "compare --system cloud aep ilp_exact learned --jobs generated --seeds 20",
    "tune": "tune capped_srw --jobs embedded:n=20 --out tuned.json",
    "tune --system heterogeneous": "tune --system heterogeneous linear_rank --jobs random:nodes=40 --out tuned.json",
    "train": "train embedded:n=20 --minutes 15 --out runs/mine",
    "train --system heterogeneous": "train --system heterogeneous lachesis-batch --minutes 15 --out runs/mine",
    "train --system cloud": "train --system cloud generated --minutes 5 --out runs/mine",
    "optimum": "optimum fair capped_srw --jobs embedded:n=20 --executors 10",
    "optimum exhaustive": "optimum exhaustive --jobs embedded:n=6 --executors 10",
    "optimum idle-value": "optimum idle-value --share 0.5 --executors 1",
    "optimum --system heterogeneous": "optimum --system heterogeneous --jobs canonical",
    "optimum bound --system heterogeneous": "optimum bound --system heterogeneous --jobs gauss:size=8 --executors 4",
    "optimum --system cloud": "optimum --system cloud --jobs normal",
    "schedulers": "schedulers weighted_fair",
    "schedulers --system heterogeneous": "schedulers --system heterogeneous",
    "schedulers --system cloud": "schedulers --system cloud",
    "capacity": "capacity /var/spark-events --price 0.05 --page capacity.html",
    "models": "models --system spark",
    "doctor": "doctor",
    "serve": "serve --scheduler fair --port 50051",
    "evaluate": "evaluate batch --run tpch-quick",
    "plot": "plot batch --run tpch-quick",
    "notebook": "notebook 07-decima",
    "report": "report --run tpch-quick",
    "results": "results --run tpch-full",
    "site": "site --run tpch-full",
    "reproduce": "reproduce --profile quick",
    "workload sources": "workload sources",
    "workload sources --system cloud": "workload sources --system cloud",
    "workload describe": "workload describe embedded:n=20",
    "workload write": "workload write embedded:n=20 --out jobs.json",
    "workload write --system heterogeneous": "workload write --system heterogeneous --jobs canonical --out plan.json",
    "workload check": "workload check schedule.json --jobs plan.json",
    "workload vms": "workload vms",
    "workload from-spark": "workload from-spark /var/spark-events --out jobs.parquet",
    "bench list": "bench list",
    "bench run": "bench run my_scheduler.py:Mine --out mine.json",
    "bench report": "bench report results/ --out page.md",
    "bench check": "bench check mine.json",
    "bench score": "bench score rule.py --task embedded-batch",
    "data fetch": "data fetch tpch",
    "data prepare": "data prepare tpch",
    "data status": "data status",
    "spark plugin": "spark plugin --out decima-spark.jar",
    "elastic": "spark elastic --out runs/elastic",
    "experiment": "spark experiment fifo fair decima:spark-batch --out runs/experiment",
    "model": "spark model data/spark --out measured",
    "profile": "spark profile --scale 0.25 --executors 1 2 4 --out runs/profile",
    "validate": "spark validate --scale 0.25 --executors 4 --out runs/validate",
}


def with_example(command: Any, path: str) -> Any:
    """The command with its example, and those of its commands, below the options.

    Args:
        command: A command or a group.
        path: Words of the command behind ``decima``.
    """
    commands: Mapping[str, Any] = getattr(command, "commands", {})
    for name, each in commands.items():
        with_example(each, f"{path} {name}")
    if path in EXAMPLES and command.epilog is None:
        command.epilog = f"\b\nExample:\n  decima {EXAMPLES[path]}"
    return command
