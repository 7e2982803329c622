"""Choice among scored actions in compiled policies: the best one, or a draw by softmax."""

from math import exp

from decima.core.jit import njit


@njit
def best_of(scores, count):
    """Index of the largest score, the first one if several are."""
    best = 0
    for index in range(1, count):
        if scores[index] > scores[best]:
            best = index
    return best


@njit
def weigh(scores, weights, count):
    """Softmax without the division: fill ``weights``, the largest one is 1; returns their sum."""
    largest, total = float(scores[best_of(scores, count)]), 0.0
    for index in range(count):
        weights[index] = exp(float(scores[index]) - largest)
        total += weights[index]
    return total


@njit
def draw(weights, count, left):
    """Index drawn in proportion to weights; ``left`` is a uniform number times their sum."""
    for index in range(count - 1):
        left -= weights[index]
        if left < 0.0:
            return index
    return count - 1
