"""Genetic programming (DEAP) searches a rule for a task of the benchmark.

    pip install . deap  # in the clone
    python examples/search_rule.py --task embedded-batch --out best_rule.py

A candidate has two expressions of the features that `decima bench score` knows: the stage with the smallest first one
goes first, the second limits the executors of its job. Candidates are chosen by their score on the validation
seeds; the best one of all is then run once on the test seeds.
"""

import argparse
import random
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from deap import gp

from decima.bench.rules import NAMES
from decima.bench.scoring import RuleScorer
from decima.bench.tasks import task_named

# Name, number of arguments and text of what expressions consist of; all have a value for every finite argument.
OPERATIONS = {
    "add": (2, "({0} + {1})"),
    "sub": (2, "({0} - {1})"),
    "mul": (2, "({0} * {1})"),
    "div": (2, "({0} / (abs({1}) + 0.001))"),
    "least": (2, "min({0}, {1})"),
    "most": (2, "max({0}, {1})"),
    "log": (1, "math.log(1.0 + abs({0}))"),
    "root": (1, "math.sqrt(abs({0}))"),
}
DEEPEST = 6  # levels of an expression; deeper offspring is replaced by its parent
FAILED = 1e9  # score of a candidate that failed
FEATURES = sorted(NAMES)


def primitives() -> gp.PrimitiveSet:
    """Operations, features and constants for DEAP."""
    known = gp.PrimitiveSet("rule", len(FEATURES))
    known.renameArguments(**{f"ARG{index}": name for index, name in enumerate(FEATURES)})
    for name, (arity, _) in OPERATIONS.items():
        known.addPrimitive(len, arity, name=name)  # DEAP never calls it: rules are compiled from their text
    known.addEphemeralConstant("constant", constant)
    return known


def constant() -> float:
    """Random constant, as likely below 1 as above."""
    return round(10.0 ** random.uniform(-2.0, 2.0), 3)


def text_of(tree: gp.PrimitiveTree) -> str:
    """Python text of an expression."""
    nodes = iter(tree)

    def read() -> str:
        node = next(nodes)
        if not node.arity:
            return str(node.value)
        return OPERATIONS[node.name][1].format(*[read() for _ in range(node.arity)])

    return read()


def rule_of(candidate: list) -> str:
    """File of a rule."""
    body = [text_of(tree) for tree in candidate]
    arguments = [name for name in FEATURES if any(name in each for each in body)] or FEATURES[:1]
    return f"import math\n\n\ndef rule({', '.join(arguments)}):\n    return {body[0]}, {body[1]}\n"


def offspring(parents: list, count: int, known: gp.PrimitiveSet) -> list:
    """Next candidates: crossover and mutation of parents drawn by tournaments of three.

    Args:
        parents: Pairs of score and candidate.
        count: How many.
        known: What :func:`primitives` returned.
    """
    children = []
    while len(children) < count:
        one, other = (min(random.sample(parents, 3), key=lambda each: each[0])[1] for _ in range(2))
        child = [gp.PrimitiveTree(tree) for tree in one]
        part = random.randrange(2)
        if random.random() < 0.6:
            child[part], _ = gp.cxOnePoint(child[part], gp.PrimitiveTree(other[part]))
        else:
            child[part] = gp.mutUniform(child[part], lambda pset, type_: gp.genGrow(pset, 0, 2, type_), known)[0]
        child = [after if after.height <= DEEPEST else before for before, after in zip(one, child, strict=True)]
        children.append(child)
    return children


def search(task: str, population: int, generations: int, seed: int) -> tuple[str, float, int, float]:
    """Text of the best rule, its validation score, candidates scored, and seconds."""
    random.seed(seed)
    known, scored, begin = primitives(), {}, time.perf_counter()
    candidates = [[gp.PrimitiveTree(gp.genHalfAndHalf(known, 1, 3)) for _ in range(2)] for _ in range(population)]
    elite: list = []
    with TemporaryDirectory() as folder, RuleScorer(task_named(task), "validation") as scorer:
        for generation in range(generations):
            rated = list(elite)
            for candidate in candidates:
                text = rule_of(candidate)
                if text not in scored:
                    file = Path(folder) / "rule.py"
                    file.write_text(text, encoding="utf-8")
                    scored[text] = scorer.score(file).get("score", FAILED)
                rated.append((scored[text], candidate))
            elite = sorted(rated, key=lambda each: each[0])[: population // 10 + 1]
            print(f"{generation:3d}  {len(scored):5d} candidates  best {elite[0][0]:.2f}", flush=True)
            candidates = offspring(rated, population, known)
    best = min(scored, key=scored.get)
    return best, scored[best], len(scored), time.perf_counter() - begin


def main(arguments: list[str] | None = None) -> dict:
    """Search, run the best rule on the test seeds; returns the line of its score."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--task", default="embedded-batch")
    parser.add_argument("--population", type=int, default=60)
    parser.add_argument("--generations", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("best_rule.py"))
    options = parser.parse_args(arguments)
    text, score, count, seconds = search(options.task, options.population, options.generations, options.seed)
    options.out.write_text(text, encoding="utf-8")
    with RuleScorer(task_named(options.task), "test") as scorer:
        line = scorer.score(options.out)
    print(text)
    print(f"{count} candidates in {seconds:.0f} s ({60.0 * count / seconds:.0f} a minute), validation {score:.2f}")
    change = "{change_percent:+.1f} % [{change_low:+.1f}, {change_high:+.1f}]".format_map(line)
    print(f"test {line['score']:.2f}, {change} against the tuned rule")
    return line


if __name__ == "__main__":
    main()
