"""Changes of a good run of executors on cloud VMs that each break one rule of its checker, which must notice."""

from fractions import Fraction


def an_executor_less(run):
    del run.executors[0]


def an_executor_on_no_vm(run):
    run.executors[0].vm = 99


def a_start_before_the_arrival(run):
    run.executors[-1].placed_s = Fraction(0)


def a_moment_at_which_nothing_happens(run):
    last = run.executors[-1].job
    for executor in run.executors:
        if executor.job == last:
            executor.placed_s += Fraction(1, 1000)


def a_vm_too_small(run):
    for each in run.result["settings"]["cluster"]["types"]:
        each["cores"] = 1


def a_start_before_the_vm_is_up(run):
    late = next(one for one in run.executors if one.start_s > one.placed_s)
    late.start_s = late.placed_s


def a_start_apart_from_the_job(run):
    run.executors[0].start_s += 1


def a_job_that_takes_longer(run):
    run.executors[0].finish_s += 1


def another_penalty(run):
    run.rules["penalty_percent"] = 31


def a_bad_placement_called_good(run):
    executor = next(one for one in run.executors if not one.well_placed)
    executor.well_placed = True


def a_vm_billed_for_less(run):
    run.result["vms"][0]["billed_s"] -= 1


def a_started_part_billed_twice(run):
    row = max(run.result["vms"], key=lambda row: row["billed_s"])
    part_s = run.result["settings"]["billing"]["granularity_s"]
    row["cost"] *= 1 + part_s / row["billed_s"]
    row["billed_s"] += part_s


def a_second_that_is_not_rounded_up(run):
    run.result["settings"]["billing"]["granularity_s"] = 0


def a_boot_that_costs_nothing(run):
    run.result["settings"]["billing"]["boot_s"] = 0


def another_cost(run):
    run.result["cost"] *= Fraction(101, 100)


def a_job_that_adds_more(run):
    run.executors[0].job_cost *= Fraction(101, 100)


def another_mean(run):
    run.result["mean_duration_s"] *= 1 + Fraction(1, 10**6)


def a_good_placement_more(run):
    run.result["good_placements"] += 1


def a_wait_more(run):
    run.result["waits"] += 1


def another_reward(run):
    run.result["reward"] += Fraction(1, 1000)


def another_weight(run):
    run.result["settings"]["beta"] = 1


MUTATIONS = {
    "whole_jobs": [an_executor_less, an_executor_on_no_vm],
    "order": [a_start_before_the_arrival, a_moment_at_which_nothing_happens],
    "capacity": [a_vm_too_small],
    "starts": [a_start_before_the_vm_is_up, a_start_apart_from_the_job],
    "durations": [a_job_that_takes_longer, another_penalty, a_bad_placement_called_good],
    "bills": [
        a_vm_billed_for_less,
        a_started_part_billed_twice,
        a_second_that_is_not_rounded_up,
        a_boot_that_costs_nothing,
        another_cost,
        a_job_that_adds_more,
    ],
    "totals": [another_mean, a_good_placement_more, a_wait_more],
    "reward": [another_reward, another_weight],
}
