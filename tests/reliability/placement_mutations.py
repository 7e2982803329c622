"""Changes of a good run of executors on cloud VMs that each break one rule of its checker, which must notice."""


def an_executor_less(run):
    del run.executors[0]


def an_executor_on_no_vm(run):
    run.executors[0].vm = 99


def a_start_before_the_arrival(run):
    run.executors[-1].placed_s = 0.0


def a_start_apart_from_the_job(run):
    run.executors[0].start_s += 1.0


def a_vm_too_small(run):
    for each in run.result["settings"]["cluster"]["types"]:
        each["cores"] = 1


def a_job_that_takes_longer(run):
    run.executors[0].finish_s += 1.0


def a_vm_billed_for_less(run):
    run.result["vms"][0]["billed_s"] -= 1.0


def another_cost(run):
    run.result["cost"] *= 1.01


def another_mean(run):
    run.result["mean_duration_s"] *= 1.0 + 1e-6


def a_good_placement_more(run):
    run.result["good_placements"] += 1


MUTATIONS = {
    "whole_jobs": [an_executor_less, an_executor_on_no_vm],
    "order": [a_start_before_the_arrival, a_start_apart_from_the_job],
    "capacity": [a_vm_too_small],
    "durations": [a_job_that_takes_longer],
    "bills": [a_vm_billed_for_less, another_cost],
    "totals": [another_mean, a_good_placement_more],
}
