"""Changes of a good plan and a good dialogue of unequal executors that each break one rule of their checker."""

MUTATIONS = {}


def breaks(rule):
    """Note a change as one that breaks a rule."""

    def wrap(change):
        MUTATIONS.setdefault(rule, []).append(change)
        return change

    return wrap


def _copies(run):
    return run.result["copies"]


def _of(run, node, *, duplicate=False):
    return next(one for one in _copies(run) if (one["job"], one["node"], one["duplicate"]) == (0, node, duplicate))


def _lawful(run):
    return [call for call in run.result["dialogue"] if call["lawful"] and call["answer"]]


def _assigned(run, node=None, *, duplicate=False):
    """The first assignment (of a node, or with a duplicate), and its call."""
    for call in _lawful(run):
        for each in call["answer"]:
            if (node is None or (each["job"], each["node"]) == (0, node)) and bool(each["duplicate"]) >= duplicate:
                return each, call
    raise AssertionError("the good run has no such assignment")


def _move(each, start_s):
    each["finish_s"] += start_s - each["start_s"]
    each["start_s"] = start_s


@breaks("whole")
def a_node_without_a_copy(run):
    run.result["copies"] = [one for one in _copies(run) if one["job"] != 1]


@breaks("whole")
def an_executor_that_is_not_there(run):
    _copies(run)[0]["executor"] = "7"


@breaks("whole")
def a_copy_for_ever(run):
    _of(run, "2")["finish_s"] = float("inf")


@breaks("whole")
def a_node_twice_on_an_executor(run):
    _of(run, "0", duplicate=True)["executor"] = _of(run, "0")["executor"]


@breaks("durations")
def a_copy_too_quick(run):
    _of(run, "2")["finish_s"] -= 0.001


@breaks("durations")
def a_slower_executor(run):
    run.instance["cluster"]["speeds"][0] = 0.5


@breaks("arrivals")
def a_later_arrival(run):
    run.instance["jobs"][1]["arrival_s"] = 1e6


@breaks("inputs")
def a_copy_that_nobody_made(run):
    _copies(run).remove(_of(run, "0", duplicate=True))


@breaks("inputs")
def a_copy_that_came_too_late(run):
    _move(_of(run, "0", duplicate=True), 0.5)


@breaks("inputs")
def a_transfer_that_is_forgotten(run):
    run.instance["jobs"][0]["edges"].append({"parent": "1", "child": "2", "data": 0.0})


@breaks("one_at_a_time")
def two_nodes_at_once(run):
    _move(_of(run, "2"), _of(run, "0")["start_s"])
    _of(run, "2")["executor"] = _of(run, "0")["executor"]


@breaks("further_copies")
def a_copy_that_is_not_called_one(run):
    _of(run, "0", duplicate=True)["duplicate"] = False


@breaks("further_copies")
def copies_where_there_are_none(run):
    run.result["settings"]["duplicate"] = False


@breaks("totals")
def another_makespan(run):
    run.result["makespan_s"] += 0.001


@breaks("totals")
def another_completion(run):
    run.result["jobs"] = [{"finish_s": 0.0}]


@breaks("totals")
def a_makespan_below_the_longest_path(run):
    run.instance["jobs"][0]["nodes"][1]["work"] += 100.0


@breaks("shortest")
def an_optimum_that_is_none(run):
    run.result["makespan_s"] += 0.001


@breaks("shortest")
def the_optimum_without_copies(run):
    run.result["makespan_s"] = 21.0


@breaks("answers")
def a_lawful_call_refused(run):
    _lawful(run)[0]["refused"] = "INVALID_ARGUMENT", "no"


@breaks("answers")
def a_mistake_of_the_service(run):
    run.result["dialogue"].append(_lawful(run)[0] | {"lawful": False, "answer": None, "refused": ("INTERNAL", "")})


@breaks("answers")
def a_wrong_call_answered_for_ever(run):
    each, call = _assigned(run)
    run.result["dialogue"].append(call | {"lawful": False, "answer": [each | {"finish_s": float("inf")}]})


@breaks("assigned")
def a_node_assigned_a_second_time(run):
    each, call = _assigned(run)
    call["answer"].append(dict(each))


@breaks("assigned")
def a_node_of_a_job_that_is_not_known(run):
    each, call = _assigned(run)
    call["answer"].append(each | {"job": 7})


@breaks("assigned")
def a_node_on_no_executor(run):
    _assigned(run)[0]["executor"] = 7


@breaks("assigned")
def more_nodes_than_asked_for(run):
    call = next(call for call in _lawful(run) if len(call["answer"]) > 1)
    call["most"] = 1


@breaks("assigned")
def a_node_that_takes_longer(run):
    _assigned(run)[0]["finish_s"] += 0.001


@breaks("not_too_early")
def a_node_before_now(run):
    each, call = _assigned(run)
    call["now_s"] = each["start_s"] + 0.001


@breaks("not_too_early")
def a_node_on_an_executor_that_is_away(run):
    each, call = _assigned(run)
    call["executors"] = {str(each["executor"]): each["start_s"] + 0.001}


@breaks("not_too_early")
def a_node_before_its_data(run):
    each, call = _assigned(run, "1")
    each["executor"], call["answer"] = 1, [one for one in call["answer"] if one["node"] != "2"]


@breaks("not_too_early")
def a_node_on_a_busy_executor(run):
    each, call = _assigned(run)
    call["copies"].append((1, "?", each["executor"], each["start_s"], each["start_s"] + 1.0, False))
    call["jobs"].append(1)


@breaks("duplicates")
def a_copy_of_a_stranger(run):
    each, _ = _assigned(run, duplicate=True)
    each["duplicate"] = ("2" if each["node"] == "1" else "1", *each["duplicate"][1:])


@breaks("duplicates")
def a_copy_that_is_there_already(run):
    each, call = _assigned(run, duplicate=True)
    call["answer"].append(each | {"node": "?"})


@breaks("duplicates")
def a_copy_behind_its_node(run):
    each, _ = _assigned(run, duplicate=True)
    node, start_s, finish_s = each["duplicate"]
    each["duplicate"] = node, start_s + 20.0, finish_s + 20.0


@breaks("duplicates")
def a_copy_where_there_are_none(run):
    run.result["asked"]["duplicate"] = False


@breaks("decisions")
def a_node_that_is_left_out(run):
    call = next(call for call in _lawful(run) if not call["most"])
    del call["answer"][-1]


@breaks("decisions")
def a_node_before_its_parents(run):
    call = next(call for call in _lawful(run) if len(call["answer"]) > 2)
    call["answer"].reverse()


@breaks("executed_once")
def a_node_that_never_was_assigned(run):
    for call in _lawful(run):
        call["answer"] = [each for each in call["answer"] if each["node"] != "2"]
