import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.evaluation.cma_search import minimize


def bowl(points):
    return ((points - 0.3) ** 2).sum(axis=1)


def search(budget, *, start=0.9, numbers=3, seed=1, **options):
    return minimize(bowl, [start] * numbers, sigma=0.2, bounds=(0.0, 1.0), budget=budget, seed=seed, **options)


@pytest.mark.parametrize("numbers", [1, 2, 6])
def test_finds_the_minimum_inside_the_bounds(numbers):
    seen = []

    def watched(points):
        seen.append(points)
        return bowl(points)

    found = minimize(watched, [0.9] * numbers, sigma=0.2, bounds=(0.0, 1.0), budget=700, seed=1)
    assert found.x == pytest.approx(np.full(numbers, 0.3), abs=0.02)
    assert found.value == bowl(found.x[None])[0]
    points = np.concatenate(seen)
    assert points.shape[1] == numbers
    assert points.min() >= 0.0
    assert points.max() <= 1.0
    assert np.array_equal(points[0], [0.9] * numbers)  # the start is tried as it is
    assert found.curve[-1]["evaluations"] == len(points) >= 700
    assert [row["best"] for row in found.curve] == sorted((row["best"] for row in found.curve), reverse=True)


def test_depends_on_the_seed_alone_and_leaves_numpys_generator_alone():
    np.random.seed(3)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    first = search(100)
    np.random.seed(3)  # noqa: NPY002
    second = search(100)
    assert np.random.random() == expected  # noqa: NPY002
    assert np.array_equal(first.x, second.x)
    assert not np.array_equal(first.x, search(100, seed=2).x)


def test_continues_an_interrupted_search():
    told = []
    search(60, on_generation=lambda values, best: told.append([list(row) for row in values]))
    evaluated = []

    def counted(points):
        evaluated.append(len(points))
        return bowl(points)

    resumed = minimize(counted, [0.9] * 3, sigma=0.2, bounds=(0.0, 1.0), budget=400, seed=1, known=told[-1])
    whole = search(400)
    assert np.array_equal(resumed.x, whole.x)
    assert resumed.curve == whole.curve
    assert sum(evaluated) == whole.curve[-1]["evaluations"] - sum(map(len, told[-1]))


def test_injected_points_are_tried():
    found = search(1, inject=[[0.3, 0.3, 0.3]])
    assert found.value == 0.0
    assert list(found.x) == [0.3, 0.3, 0.3]


def test_starts_anew_when_converged():
    sizes = []
    search(900, numbers=2, on_generation=lambda values, best: sizes.append(len(values[-1])))
    assert set(sizes) >= {sizes[0], 2 * sizes[0]}


def test_bad_input():
    with pytest.raises(ConfigError, match="budget must be"):
        search(0)
    with pytest.raises(ConfigError, match="generation 0 of the checkpoint has 2 values, expected 7"):
        search(50, known=[[1.0, 2.0]])
