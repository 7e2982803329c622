"""Changes of a good run of executors on cloud VMs that each break one rule of its checker, which must notice."""

from fractions import Fraction

from tests.reliability.mutations import add, at, put, scale

BILLING = at("result", "settings", "billing")


def _a_moment_at_which_nothing_happens(run):
    last = run.executors[-1].job
    for executor in run.executors:
        if executor.job == last:
            executor.placed_s += Fraction(1, 1000)


def _a_vm_too_small(run):
    for each in run.result["settings"]["cluster"]["types"]:
        each["cores"] = 1


def _a_started_part_billed_twice(run):
    row = max(run.result["vms"], key=lambda row: row["billed_s"])
    part_s = BILLING(run)["granularity_s"]
    row["cost"] *= 1 + part_s / row["billed_s"]
    row["billed_s"] += part_s


MUTATIONS = {
    "whole_jobs": {
        "an executor less": lambda run: run.executors.pop(0),
        "an executor on no VM": put(at("executors", 0), vm=99),
    },
    "order": {
        "a start before the arrival": put(at("executors", -1), placed_s=Fraction(0)),
        "a moment at which nothing happens": _a_moment_at_which_nothing_happens,
    },
    "capacity": {"a VM too small": _a_vm_too_small},
    "starts": {
        "a start before the VM is up": put(
            lambda run: next(one for one in run.executors if one.start_s > one.placed_s),
            start_s=lambda one: one.placed_s,
        ),
        "a start apart from the job": add(at("executors", 0), start_s=1),
    },
    "durations": {
        "a job that takes longer": add(at("executors", 0), finish_s=1),
        "another penalty": put(at("rules"), penalty_percent=31),
        "a bad placement called good": put(
            lambda run: next(one for one in run.executors if not one.well_placed), well_placed=True
        ),
    },
    "bills": {
        "a VM billed for less": add(at("result", "vms", 0), billed_s=-1),
        "a started part billed twice": _a_started_part_billed_twice,
        "a second that is not rounded up": put(BILLING, granularity_s=0),
        "a boot that costs nothing": put(BILLING, boot_s=0),
        "another cost": scale(at("result"), cost=Fraction(101, 100)),
        "a job that adds more": scale(at("executors", 0), job_cost=Fraction(101, 100)),
    },
    "totals": {
        "another mean": scale(at("result"), mean_duration_s=1 + Fraction(1, 10**6)),
        "a good placement more": add(at("result"), good_placements=1),
        "a wait more": add(at("result"), waits=1),
    },
    "reward": {
        "another reward": add(at("result"), reward=Fraction(1, 1000)),
        "another weight": put(at("result", "settings"), beta=1),
    },
}
