import math

import pytest

from decima.exceptions import ConfigError
from decima.training import schedules
from decima.training.recipe import RECIPES, Recipe, parse_value


def test_named_recipes_exist_and_paper_is_algorithm_1():
    paper = Recipe.named("paper")
    assert (paper.algorithm, paper.sequences, paper.rollouts) == ("reinforce", 1, 16)
    assert (paper.lr_start, paper.lr_end) == (1e-3, 1e-3)
    assert (paper.baseline, paper.normalise, paper.effect_classes) == ("time", "raw", False)
    assert paper.horizon_s is None
    assert paper.trace_s is None
    assert not paper.imitates
    assert paper.differential_window == 100_000
    assert 1.0 / (1000.0 * paper.episode_start_s) == pytest.approx(5e-7)
    assert 1.0 / (1000.0 * paper.episode_end_s) == pytest.approx(5e-8)
    assert Recipe.named("fast") == Recipe.named("fast-batch")
    assert Recipe.named("fast", "stream") == Recipe.named("fast-stream")
    assert Recipe.of("fast", kind="stream").teacher_parameters != Recipe.of("fast").teacher_parameters


@pytest.mark.parametrize("name", list(RECIPES))
def test_yaml_round_trip(name, tmp_path):
    recipe = Recipe.named(name, iterations=7)
    path = tmp_path / "own.yaml"
    path.write_text(recipe.to_yaml())
    assert Recipe.load(path) == recipe


def test_yaml_starts_from_a_named_recipe_and_takes_the_name_of_the_file(tmp_path):
    path = tmp_path / "gentle.yaml"
    path.write_text("base: fast\nlr_start: 5e-4\n")
    assert Recipe.load(path) == Recipe.named("fast", name="gentle", lr_start=5e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sequences": 0}, "sequences must be a whole number of at least 1, got 0"),
        ({"rollouts": 2.5}, "rollouts must be a whole number"),
        ({"lr_start": 0.0}, "lr_start must be a number above 0"),
        ({"lr_start": math.nan}, "lr_start must be a number above 0"),
        ({"lr_start": "fast"}, "lr_start must be a number above 0, got 'fast'"),
        ({"lr_start": True}, "lr_start must be a number"),
        ({"adam_beta1": 1.0}, "adam_beta1 must be a number of at least 0 and at most"),
        ({"algorithm": "a3c"}, "algorithm must be one of reinforce, ppo, got 'a3c'"),
        ({"effect_classes": 1}, "effect_classes must be true or false"),
        ({"gradient_norm": -1.0}, "gradient_norm must be a number above 0 .or none."),
        ({"epochs": 2}, "epochs and minibatches need algorithm ppo"),
        ({"lr_shape": "geometric", "lr_end": 0.0}, "lr_end must be above 0"),
        ({"episode_end_s": 1.0}, "episode_end_s must be at least episode_start_s"),
        ({"teacher": "capped"}, "teacher: unknown scheduler 'capped'; did you mean 'capped_srw'"),
        ({"teacher": "capped_srw", "teacher_parameters": {"c9": 1.0}}, "teacher: .*no parameter 'c9'"),
        ({"lr": 0.1}, "unknown field 'lr'"),
        ({"lr_strat": 0.1}, "unknown field 'lr_strat'; did you mean 'lr_start'"),
    ],
)
def test_bad_values_are_named(changes, message):
    with pytest.raises(ConfigError, match=message):
        Recipe.named("paper", **changes)


def test_overrides_as_a_command_line_gives_them():
    recipe = Recipe.of("fast", ["lr_start=1e-2", "horizon_s=none", "effect_classes=false", "teacher=fair"])
    assert (recipe.lr_start, recipe.horizon_s, recipe.effect_classes, recipe.teacher) == (0.01, None, False, "fair")
    recipe = Recipe.of("fast", ["teacher_parameters={c0: 2.5, c1: 1}"])
    assert recipe.teacher_parameters == {"c0": 2.5, "c1": 1}
    assert not Recipe.of("fast", ["teacher=none"]).imitates
    assert parse_value("1e-3") == 1e-3


@pytest.mark.parametrize("pairs", [["lr_start"], ["=3"]])
def test_overrides_of_another_form(pairs):
    with pytest.raises(ConfigError, match="expected KEY=VALUE"):
        Recipe.of("paper", pairs)


@pytest.mark.parametrize(
    ("content", "message"),
    [("- 1\n", "must hold fields"), ("a: [\n", "is no YAML"), ("rollouts: 0\n", "r.yaml: recipe: rollouts")],
)
def test_bad_files(content, message, tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message):
        Recipe.load(path)
    with pytest.raises(ConfigError, match=r"cannot read recipe .*none\.yaml: No such file"):
        Recipe.load(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="unknown recipe 'slow'; known: fast, paper, fast-batch"):
        Recipe.named("slow")


def test_learning_rate_and_entropy_follow_their_shapes():
    linear = Recipe(lr_start=1.0, lr_end=0.1, entropy_start=2.0, entropy_end=1.0, entropy_iterations=10)
    assert schedules.learning_rate(linear, 0, 0.5) == pytest.approx(0.55)
    assert schedules.learning_rate(linear.replace(lr_iterations=4), 2, 0.0) == pytest.approx(0.55)
    assert schedules.learning_rate(linear.replace(lr_iterations=4), 9, 0.0) == pytest.approx(0.1)
    assert schedules.learning_rate(linear.replace(lr_shape="geometric"), 0, 0.5) == pytest.approx(math.sqrt(0.1))
    assert schedules.learning_rate(linear.replace(lr_shape="cosine"), 0, 0.5) == pytest.approx(0.55)
    assert schedules.entropy_weight(linear, 5, 0.9) == pytest.approx(1.5)


def test_episodes_grow():
    algorithm_1 = Recipe(episode_start_s=100.0, episode_growth_s=10.0, episode_end_s=130.0)
    assert [schedules.mean_episode_s(algorithm_1, k, 0.0) for k in (0, 2, 9)] == [100.0, 120.0, 130.0]
    appendix_c = Recipe()
    lengths = [schedules.mean_episode_s(appendix_c, 0, share) for share in (0.0, 0.5, 1.0)]
    assert lengths == pytest.approx([2000.0, 1.0 / 2.75e-4, 20_000.0])
    assert schedules.mean_episode_s(Recipe(episode_start_s=None), 3, 0.5) is None


def test_budget():
    recipe = Recipe(iterations=10, wall_seconds=100.0)
    assert schedules.budget_used(recipe, 5, 99.0, 0.0) == 0.5  # iterations, if limited, alone set the pace
    assert schedules.is_over(recipe, 5, 100.0, 0.0)
    assert schedules.is_over(recipe, 10, 0.0, 0.0)
    assert not schedules.is_over(recipe, 9, 99.0, 1e9)
    timed = Recipe(wall_seconds=100.0, cpu_seconds=200.0)
    assert schedules.budget_used(timed, 5, 20.0, 80.0) == 0.4
    assert Recipe().has_stop is False
    assert timed.has_stop


def test_teacher_hands_over():
    recipe = Recipe.named("fast", teacher_iterations=5)
    assert [schedules.teacher_share(recipe, k) for k in range(5)] == pytest.approx([1.0, 0.75, 0.5, 0.25, 0.0])
    assert schedules.teacher_share(recipe.replace(teacher_iterations=1), 0) == 1.0
    rates = [schedules.teacher_learning_rate(recipe.replace(teacher_lr=1.0, teacher_lr_end=0.01), k) for k in (0, 2, 4)]
    assert rates == pytest.approx([1.0, 0.1, 0.01])
