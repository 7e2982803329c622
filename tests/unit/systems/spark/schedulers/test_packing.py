"""Packing heuristics: formulas by hand, small clusters followed by hand, compiled rules against plain Python ones."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest

import decima
from decima.systems.spark.schedulers import Decision
from decima.systems.spark.schedulers.packing import alignment, frag_scores, long_scores, troublesome
from decima.systems.spark.settings import Settings
from decima.workload import embedded_poisson
from decima.workload.arrivals import with_requests
from tests.toy_jobs import job, stage, workload

CLASSES = np.array([[0.25, 1.0], [0.5, 1.0], [1.0, 1.0]])
EXECUTORS = np.array([4, 4, 2])
REQUESTS = np.array([[0.2, 1.0], [0.25, 1.0], [0.3, 1.0], [0.9, 1.0]])


def test_a_stage_is_long_by_the_longest_of_its_job():
    assert long_scores(np.array([2.0, 8.0, 4.0])).tolist() == [0.25, 1.0, 0.5]
    assert long_scores(np.zeros(2)).tolist() == [1.0, 1.0]


def test_a_stage_is_hard_to_pack_that_fits_few_executors():
    assert frag_scores(REQUESTS, CLASSES, EXECUTORS).tolist() == [1.0, 1.0, 0.6, 0.2]
    assert frag_scores(np.array([[0.2, 2.0]]), CLASSES, EXECUTORS).tolist() == [0.0]


def test_troublesome_stages_are_long_or_hard_to_pack():
    durations = np.array([10.0, 1.0, 9.0, 1.0])
    arguments = (durations, REQUESTS, CLASSES, EXECUTORS)
    assert troublesome(*arguments, 0.9, 0.2).tolist() == [True, False, True, True]
    assert troublesome(*arguments, 1.0, 0.6).tolist() == [True, False, True, True]
    assert troublesome(*arguments, 1.0, -1.0).tolist() == [True, False, False, False]
    assert not troublesome(*arguments, 2.0, 0.1).any()


def test_alignment_is_a_dot_product_where_the_task_fits():
    expected = [[1.05, 1.1, 1.2], [1.0625, 1.125, 1.25], [-np.inf, 1.15, 1.3], [-np.inf, -np.inf, 1.9]]
    assert alignment(REQUESTS, CLASSES) == pytest.approx(np.array(expected))


def asking(made, *requests):
    """The job with these memory requests of its stages."""
    return replace(made, requests=np.array(requests))


def finishes(scheduler, jobs, classes, **parameters):
    """When the stages of each job finish, in seconds, without any delay."""
    cluster = Settings.of_mode("simplified", classes=classes)
    result = decima.simulate(jobs, scheduler, cluster=cluster, parameters=parameters)
    return [(each / 1000.0).tolist() for each in result.stage_finish_ms]


# a long stage, and a short one above another long one
FORK = workload(asking(job(stage("a", 1, 10.0), stage("b", 1, 1.0), stage("c", 1, 9.0, 1)), 0.2, 0.2, 0.2))


def test_graphene_holds_troublesome_stages_until_their_group_is_available():
    one = ((1.0, 1),)
    assert finishes("weighted_best_fit", FORK, one) == [[10.0, 11.0, 20.0]]
    assert finishes("graphene", FORK, one, long=0.9, frag=-1) == [[11.0, 1.0, 20.0]]
    assert finishes("graphene", FORK, one, long=0.95, frag=-1) == [[10.0, 11.0, 20.0]]
    assert finishes("graphene", FORK, one, long=2, frag=-1) == [[10.0, 11.0, 20.0]]


def test_a_price_lets_the_job_go_first_that_fits_exactly():
    jobs = workload(asking(job(stage("a", 4, 1.0)), 0.3), asking(job(stage("a", 3, 2.0)), 0.9))
    classes = ((0.5, 1), (1.0, 1))
    free = {"c0": 30, "c1": 10, "price": 0.0}
    assert finishes("priced_srw", jobs, classes, **free) == [[2.0], [8.0]]
    assert finishes("priced_srw", jobs, classes, **free | {"price": 5.0}) == [[4.0], [6.0]]


def test_shares_are_counted_in_memory_if_asked_for():
    # Two jobs share 4 executors of 0.25 and 1 of 1, memory 2 in all: 3 executors each, or a memory of 1.
    jobs = workload(asking(job(stage("a", 12, 1.0)), 0.2), asking(job(stage("a", 2, 3.0)), 0.9))
    classes = ((0.25, 4), (1.0, 1))
    fixed = {"alpha": 0, "order": 0, "leftover": 0, "larger": 2}
    assert finishes("weighted_best_fit", jobs, classes, **fixed) == [[4.0], [6.0]]
    assert finishes("weighted_best_fit", jobs, classes, by_memory=1, **fixed) == [[3.0], [6.0]]


class PlainTetris:
    """Tetris by :func:`alignment`."""

    name = "plain_tetris"

    def reset(self, rng):
        pass

    def decide(self, observation):
        sizes = np.array([[each.memory, each.cpu] for each in observation.classes])
        order = {each.id: place for place, each in enumerate(observation.jobs)}
        stages = sorted(observation.frontier, key=lambda each: (order[each.job.id], each.index))
        products = alignment(np.array([[each.memory, each.cpu] for each in stages]), sizes)
        products[:, observation.offers == 0] = -np.inf
        products[[not each.runnable for each in stages]] -= 1e9
        place, kind = np.unravel_index(np.argmax(products), products.shape)
        count = min(stages[place].room, int(observation.offers[kind]))
        return observation.grant(stages[place], count, int(kind))


class PlainGraphene:
    """Graphene* with shares in executors, jobs by arrival or by work, and all executors handed out."""

    name = "plain_graphene"

    def __init__(self, long, frag, alpha, order, larger):
        self.long, self.frag, self.alpha, self.order, self.larger = long, frag, alpha, order, larger

    def reset(self, rng):
        pass

    def held_back(self, observation, owner):
        """Troublesome stages of a job, none if their whole group is available."""
        stages = owner.stages
        durations = np.array([each.mean_duration_ms for each in stages])
        requests, sizes = (
            np.array([[one.memory, one.cpu] for one in those]) for those in (stages, observation.classes)
        )
        counts = np.array([each.executors for each in observation.classes])
        hard = troublesome(durations, requests, sizes, counts, self.long, self.frag)
        state = observation.state
        waits = any(state.stage_unsaturated_parents[each.id] > 0 for each, one in zip(stages, hard, strict=True) if one)
        return {each.id for each, one in zip(stages, hard, strict=True) if one and waits}

    def ranked(self, observation, owner):
        """Best stage of a job: (held back, not runnable, classes too large, index), class, stage; None if none."""
        back = self.held_back(observation, owner)
        found = []
        for each in observation.frontier:
            if each.job != owner:
                continue
            fits = np.flatnonzero(each.fits)
            kind = next(one for one in fits if observation.offers[one] > 0)
            over = int(kind - fits[0])
            if self.larger == 2 and over:
                continue
            found.append(((each.id in back, not each.runnable, over, each.index), int(kind), each))
        return min(found, key=lambda one: one[0]) if found else None

    def decide(self, observation):
        weights = {owner.id: owner.work_ms**self.alpha for owner in observation.jobs}
        unsaturated = observation.state.job_unsaturated
        total = sum(weights[owner.id] for owner in observation.jobs if unsaturated[owner.id] > 0)
        candidates, own = [], None
        for place, owner in enumerate(observation.jobs):
            ranked = self.ranked(observation, owner)
            if ranked is None:
                continue
            rank, kind, chosen = ranked
            share = ceil(observation.num_executors * weights[owner.id] / total - 1e-9) if total > 0.0 else 1
            level = rank[2] if self.larger == 1 else 0
            key = (rank[0], level, place if self.order == 0 else owner.work_ms)
            stages = [each.id for each in owner.stages]
            state = observation.state
            still = not (state.stage_executors[stages] + state.stage_moving[stages] + state.stage_commit[stages]).any()
            candidates.append((key, max(share - owner.allocation, int(still)), kind, chosen))
            if owner == observation.source_job and not rank[0] and share > owner.allocation:
                own = candidates[-1]
        if own is not None:
            return self.given(observation, *own[1:])
        for missing in (True, False):
            mine = [one for one in candidates if one[1] > 0] if missing else candidates
            if mine:
                _, count, kind, chosen = min(mine, key=lambda one: one[0])
                if not missing:
                    count = (observation.num_free_executors - 1) // len(observation.frontier) + 1
                return self.given(observation, count, kind, chosen)
        return Decision.idle()

    def given(self, observation, count, kind, chosen):
        if self.larger == 0:
            return observation.grant(chosen, min(count, chosen.room, int(observation.offers[chosen.fits].sum())))
        return observation.grant(chosen, min(count, chosen.room, int(observation.offers[kind])), kind)


@pytest.fixture(scope="module")
def stream():
    return with_requests(embedded_poisson(12, 4.0, seed=5, sizes="2g"), "uniform", 5)


def results(jobs, scheduler, **parameters):
    cluster = Settings.of_mode("paper", classes=((0.25, 4), (0.5, 4), (0.75, 4), (1.0, 4)))
    return decima.simulate(jobs, scheduler, cluster=cluster, seed=3, parameters=parameters).completion_ms.tolist()


def test_tetris_is_what_its_formula_says(stream):
    assert results(stream, "tetris") == results(stream, PlainTetris())


@pytest.mark.parametrize(
    ("long", "frag", "alpha", "order", "larger"),
    [(0.8, 0.25, -0.5, 0, 0), (0.5, 0.5, 0.0, 1, 1), (0.9, -1.0, -1.0, 0, 2), (2.0, -1.0, 0.5, 1, 0)],
)
def test_graphene_is_what_its_formulas_say(stream, long, frag, alpha, order, larger):
    values = {"long": long, "frag": frag, "alpha": alpha, "order": order, "larger": larger}
    expected = results(stream, PlainGraphene(**values))
    assert results(stream, "graphene", **values, sticky=0) == expected
    if long > 1.0 and frag < 0.0:
        del values["long"], values["frag"]
        assert results(stream, "weighted_best_fit", **values) == expected
