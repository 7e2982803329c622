"""Agents for spark-sched-sim, as its users write them, and an entry of one."""

import numpy as np
from sched_sim import SchedSimScheduler


class FairAgent:
    """Agent for spark-sched-sim: the releasing job first, then the first job below its share of the executors."""

    name = "fair_agent"
    num_executors = 50

    def schedule(self, obs):
        nodes, offered = obs["dag_batch"].nodes, obs["num_committable_execs"]
        place = np.cumsum(nodes[:, 2]) - 1  # of a node among those that may be chosen
        roots = np.setdiff1d(np.arange(len(nodes)), obs["dag_batch"].edge_links[:, 1])
        jobs, share = len(obs["exec_supplies"]), -(-self.num_executors // len(obs["exec_supplies"]))
        source = obs["source_job_idx"]
        for job in [source] * (source < jobs) + [job for job in range(jobs) if job != source]:
            rows = np.arange(*obs["dag_ptr"][job : job + 2])
            rows = sorted(rows[nodes[rows, 2] > 0], key=lambda row: row not in roots)
            missing = offered if job == source else share - obs["exec_supplies"][job]
            if rows and missing > 0:
                return {"stage_idx": int(place[rows[0]]), "num_exec": min(offered, missing)}, {}
        return {"stage_idx": -1, "num_exec": offered}, {}


class ChanceAgent(FairAgent):
    """One that draws, and is seeded by the adapter."""

    name = "chance_agent"

    def set_seed(self, seed):
        self.rng = np.random.default_rng(seed)

    def schedule(self, obs):
        choices = int(obs["dag_batch"].nodes[:, 2].sum())
        executors = int(self.rng.integers(1, obs["num_committable_execs"] + 1))
        return {"stage_idx": int(self.rng.integers(choices)), "num_exec": executors}, {}


def sched_sim_fair():
    return SchedSimScheduler(FairAgent())
