"""Changes of a good plan and a good dialogue of heterogeneous executors that each break one rule of their checker."""

from tests.reliability.mutations import add, at, put


def _copy(node, *, duplicate=False):
    """The copy of a node of the first job."""

    def find(run):
        for one in run.result["copies"]:
            if (one["job"], one["node"], one["duplicate"]) == (0, node, duplicate):
                return one
        raise AssertionError("the good run has no such copy")

    return find


def _lawful(run):
    return [call for call in run.result["dialogue"] if call["lawful"] and call["answer"]]


def _assigned(run, node=None, *, duplicate=False):
    """The first assignment (of a node, or with a duplicate), and its call."""
    for call in _lawful(run):
        for each in call["answer"]:
            if (node is None or (each["job"], each["node"]) == (0, node)) and bool(each["duplicate"]) >= duplicate:
                return each, call
    raise AssertionError("the good run has no such assignment")


def _first(run):
    return _assigned(run)[0]


def _move(each, start_s):
    each["finish_s"] += start_s - each["start_s"]
    each["start_s"] = start_s


def _answered(least):
    """The first lawful call with so many answers."""
    return lambda run: next(call for call in _lawful(run) if len(call["answer"]) >= least)


def _of_call(change):
    """The change by a function of the first assignment and its call."""
    return lambda run: change(*_assigned(run))


def _of_duplicate(change):
    """The change by a function of the first assignment with a duplicate and its call."""
    return lambda run: change(*_assigned(run, duplicate=True))


def _two_nodes_at_once(run):
    _move(_copy("2")(run), _copy("0")(run)["start_s"])
    _copy("2")(run)["executor"] = _copy("0")(run)["executor"]


def _a_mistake_of_the_service(run):
    run.result["dialogue"].append(_lawful(run)[0] | {"lawful": False, "answer": None, "refused": ("INTERNAL", "")})


def _a_wrong_call_answered_for_ever(run):
    each, call = _assigned(run)
    run.result["dialogue"].append(call | {"lawful": False, "answer": [each | {"finish_s": float("inf")}]})


def _a_node_before_its_data(run):
    each, call = _assigned(run, "1")
    each["executor"], call["answer"] = 1, [one for one in call["answer"] if one["node"] != "2"]


def _a_node_on_a_busy_executor(each, call):
    call["copies"].append((1, "?", each["executor"], each["start_s"], each["start_s"] + 1.0, False))
    call["jobs"].append(1)


def _a_copy_of_a_stranger(each, _):
    each["duplicate"] = ("2" if each["node"] == "1" else "1", *each["duplicate"][1:])


def _a_copy_behind_its_node(each, _):
    node, start_s, finish_s = each["duplicate"]
    each["duplicate"] = node, start_s + 20.0, finish_s + 20.0


def _a_node_that_never_was_assigned(run):
    for call in _lawful(run):
        call["answer"] = [each for each in call["answer"] if each["node"] != "2"]


MUTATIONS = {
    "whole": {
        "a node without a copy": put(
            at("result"), copies=lambda result: [one for one in result["copies"] if one["job"] != 1]
        ),
        "an executor that is not there": put(at("result", "copies", 0), executor="7"),
        "a copy for ever": put(_copy("2"), finish_s=float("inf")),
        "a node twice on an executor": lambda run: put(
            _copy("0", duplicate=True), executor=_copy("0")(run)["executor"]
        )(run),
    },
    "durations": {
        "a copy too quick": add(_copy("2"), finish_s=-0.001),
        "a slower executor": put(at("instance", "cluster"), speeds=lambda cluster: [0.5, *cluster["speeds"][1:]]),
    },
    "arrivals": {"a later arrival": put(at("instance", "jobs", 1), arrival_s=1e6)},
    "inputs": {
        "a copy that nobody made": lambda run: run.result["copies"].remove(_copy("0", duplicate=True)(run)),
        "a copy that came too late": lambda run: _move(_copy("0", duplicate=True)(run), 0.5),
        "a transfer that is forgotten": lambda run: run.instance["jobs"][0]["edges"].append(
            {"parent": "1", "child": "2", "data": 0.0}
        ),
    },
    "one_at_a_time": {"two nodes at once": _two_nodes_at_once},
    "further_copies": {
        "a copy that is not called one": put(_copy("0", duplicate=True), duplicate=False),
        "copies where there are none": put(at("result", "settings"), duplicate=False),
    },
    "totals": {
        "another makespan": add(at("result"), makespan_s=0.001),
        "another completion": put(at("result"), jobs=[{"finish_s": 0.0}]),
        "a makespan below the longest path": add(at("instance", "jobs", 0, "nodes", 1), work=100.0),
    },
    "shortest": {
        "an optimum that is none": add(at("result"), makespan_s=0.001),
        "the optimum without copies": put(at("result"), makespan_s=21.0),
    },
    "answers": {
        "a lawful call refused": put(lambda run: _lawful(run)[0], refused=("INVALID_ARGUMENT", "no")),
        "a mistake of the service": _a_mistake_of_the_service,
        "a wrong call answered for ever": _a_wrong_call_answered_for_ever,
    },
    "assigned": {
        "a node assigned a second time": _of_call(lambda each, call: call["answer"].append(dict(each))),
        "a node of a job that is not known": _of_call(lambda each, call: call["answer"].append(each | {"job": 7})),
        "a node on no executor": put(_first, executor=7),
        "more nodes than asked for": put(_answered(2), most=1),
        "a node that takes longer": add(_first, finish_s=0.001),
    },
    "not_too_early": {
        "a node before now": _of_call(lambda each, call: call.update(now_s=each["start_s"] + 0.001)),
        "a node on an executor that is away": _of_call(
            lambda each, call: call.update(executors={str(each["executor"]): each["start_s"] + 0.001})
        ),
        "a node before its data": _a_node_before_its_data,
        "a node on a busy executor": _of_call(_a_node_on_a_busy_executor),
    },
    "duplicates": {
        "a copy of a stranger": _of_duplicate(_a_copy_of_a_stranger),
        "a copy that is there already": _of_duplicate(lambda each, call: call["answer"].append(each | {"node": "?"})),
        "a copy behind its node": _of_duplicate(_a_copy_behind_its_node),
        "a copy where there are none": put(at("result", "asked"), duplicate=False),
    },
    "decisions": {
        "a node that is left out": lambda run: next(call for call in _lawful(run) if not call["most"])["answer"].pop(),
        "a node before its parents": lambda run: _answered(3)(run)["answer"].reverse(),
    },
    "executed_once": {"a node that never was assigned": _a_node_that_never_was_assigned},
}
