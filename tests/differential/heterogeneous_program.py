"""The shortest schedule as a mixed-integer program for HiGHS, written apart from the branch and bound."""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix


def shortest_s(instance, *, duplicate):
    """Makespan in seconds of the shortest schedule, to the solver's tolerances."""
    nodes, executors = len(instance), len(instance.cluster)
    time = [[instance.time_s(node, executor) for executor in range(executors)] for node in range(nodes)]
    start, parents, data = instance.parents
    edges = [(int(parents[e]), c, float(data[e])) for c in range(nodes) for e in range(start[c], start[c + 1])]
    # Everything on executor 0.
    horizon = float(instance.arrival_s.max() + sum(row[0] for row in time))
    names = {}

    def var(*key):
        return names.setdefault(key, len(names))

    rows, low, high = [], [], []

    def constrain(terms, least, most):
        rows.append(terms)
        low.append(least)
        high.append(most)

    length = var("length")
    for i in range(nodes):
        copies = [(var("x", i, r), 1.0) for r in range(executors)]
        constrain(copies, 1.0, executors if duplicate else 1.0)
        constrain([(var("first", i, r), 1.0) for r in range(executors)], 1.0, 1.0)
        for r in range(executors):
            constrain([(var("x", i, r), 1.0), (var("first", i, r), -1.0)], 0.0, np.inf)
            big = horizon + time[i][r]
            constrain([(length, 1.0), (var("s", i, r), -1.0), (var("first", i, r), -big)], time[i][r] - big, np.inf)
    for e, (p, c, size) in enumerate(edges):
        for r in range(executors):
            constrain([(var("y", e, a, r), 1.0) for a in range(executors)] + [(var("x", c, r), -1.0)], 0.0, 0.0)
            for a in range(executors):
                constrain([(var("x", p, a), 1.0), (var("y", e, a, r), -1.0)], 0.0, np.inf)
                needed = time[p][a] + instance.transfer_s(size, a, r)
                slack = horizon + needed
                constrain(
                    [(var("s", c, r), 1.0), (var("s", p, a), -1.0), (var("y", e, a, r), -slack)], needed - slack, np.inf
                )
    for i in range(nodes):
        for j in range(i + 1, nodes):
            for r in range(executors):
                order, both = var("o", i, j, r), [(var("x", i, r), -1.0), (var("x", j, r), -1.0)]
                si, sj = var("s", i, r), var("s", j, r)
                big = horizon + max(time[i][r], time[j][r])
                both = [(name, big * value) for name, value in both]
                constrain([(sj, 1.0), (si, -1.0), (order, -big), *both], time[i][r] - 3.0 * big, np.inf)
                constrain([(si, 1.0), (sj, -1.0), (order, big), *both], time[j][r] - 2.0 * big, np.inf)
    lower, upper, whole = np.zeros(len(names)), np.ones(len(names)), np.ones(len(names))
    for key, place in names.items():
        if key[0] in ("s", "length"):
            whole[place], upper[place] = 0, horizon
        if key[0] == "s":
            lower[place] = instance.arrival_s[key[1]]
    entries = [(value, row, place) for row, terms in enumerate(rows) for place, value in terms]
    values, at, places = zip(*entries, strict=True)
    matrix = csr_matrix((values, (at, places)), shape=(len(rows), len(names)))
    cost = np.zeros(len(names))
    cost[length] = 1.0
    options = {"mip_rel_gap": 0.0}
    for unit in (1.0, 0.3, 3.0):  # of times, in seconds: HiGHS calls an optimum at its tolerance an error
        scale = np.where(whole == 1, 1.0, unit)
        limits = LinearConstraint(matrix.multiply(scale).tocsr(), low, high)
        bounds = Bounds(lower / scale, upper / scale)
        solved = milp(cost * scale, constraints=limits, bounds=bounds, integrality=whole, options=options)
        if solved.success:
            break
    assert solved.success, solved.message
    return float(solved.fun)
