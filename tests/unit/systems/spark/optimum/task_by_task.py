"""A second implementation of the rules of the search over orders: one executor, one task at a time, no sharing."""

import heapq

import numpy as np


def completion_ms(workload, order, executors, runnable_only):
    """Completion times of one order; durations are the mean of the last-wave list of the lowest level."""
    stages = []
    for index, job in enumerate(workload.jobs):
        profile = job.profile
        base = len(stages)
        for number, stage in enumerate(profile.stages):
            later = next(lists[0] for lists in (stage.rest, stage.first, stage.fresh) if len(lists[0]))
            stages.append(
                {
                    "job": index,
                    "duration": float(np.mean(later)),
                    "waiting": stage.num_tasks,
                    "unfinished": stage.num_tasks,
                    "parents": {base + parent for parent in stage.parents},
                    "key": (-profile.downstream_work_ms[number], number),
                }
            )
    finish = np.full(len(workload.jobs), np.nan)
    idle = set(range(executors))
    running = []
    now = 0.0

    def waiting_tasks(job):
        return sum(stage["waiting"] for stage in stages if stage["job"] == job)

    def runnable(job):
        found = [stage for stage in stages if stage["job"] == job and stage["waiting"] and not stage["parents"]]
        return min(found, key=lambda stage: stage["key"], default=None)

    def start(executor, stage):
        stage["waiting"] -= 1
        heapq.heappush(running, (now + stage["duration"], executor, stages.index(stage)))

    def offer():
        reserved = 0
        for job in order:
            while (stage := runnable(job)) is not None and len(idle) > reserved:
                start(idle.pop(), stage)
            if not runnable_only:
                reserved += waiting_tasks(job)

    offer()
    while running:
        now = running[0][0]
        while running and running[0][0] == now:
            _, executor, number = heapq.heappop(running)
            stage = stages[number]
            stage["unfinished"] -= 1
            if stage["waiting"]:
                start(executor, stage)
            else:
                idle.add(executor)
        for number, stage in enumerate(stages):
            if stage["unfinished"] == 0:
                for other in stages:
                    other["parents"].discard(number)
        for job in range(len(finish)):
            if np.isnan(finish[job]) and not any(s["unfinished"] for s in stages if s["job"] == job):
                finish[job] = now
        offer()
    return finish
