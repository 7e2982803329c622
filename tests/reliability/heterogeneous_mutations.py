"""Changes of a good plan of heterogeneous executors that each break one rule of its checker."""

from tests.reliability.mutations import add, at, put


def _copy(node, *, duplicate=False):
    """The copy of a node of the first job."""

    def find(run):
        for one in run.result["copies"]:
            if (one["job"], one["node"], one["duplicate"]) == (0, node, duplicate):
                return one
        raise AssertionError("the good run has no such copy")

    return find


def _move(each, start_s):
    each["finish_s"] += start_s - each["start_s"]
    each["start_s"] = start_s


def _two_nodes_at_once(run):
    _move(_copy("2")(run), _copy("0")(run)["start_s"])
    _copy("2")(run)["executor"] = _copy("0")(run)["executor"]


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
}
