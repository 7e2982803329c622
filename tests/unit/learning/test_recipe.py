import math

import pytest
import yaml

from decima.core.errors import ConfigError
from decima.learning.recipe import GONE, RECIPES, Recipe
from decima.learning.store import list_policies, read_policy
from decima.systems.spark.policy import task  # noqa: F401  registers recipes


def test_named_recipes_exist_and_paper_is_algorithm_1():
    paper = Recipe.named("paper")
    learning = paper.learning
    assert (paper.algorithm, learning.sequences, learning.rollouts) == ("reinforce", 1, 16)
    assert (learning.lr_start, learning.lr_end) == (1e-3, 1e-3)
    assert (learning.baseline, learning.normalise, learning.effect_classes) == ("time", "raw", False)
    assert learning.horizon_s is None
    assert learning.trace_s is None
    assert not paper.imitates
    assert 1.0 / (1000.0 * learning.episode_start_s) == pytest.approx(5e-7)
    assert 1.0 / (1000.0 * learning.episode_end_s) == pytest.approx(5e-8)
    assert Recipe.named("fast") == Recipe.named("fast-batch")
    assert Recipe.named("fast", "stream") == Recipe.named("fast-stream")
    assert Recipe.of("fast", task="stream").imitation != Recipe.of("fast").imitation


@pytest.mark.parametrize("name", list(RECIPES))
def test_yaml_round_trip(name, tmp_path):
    recipe = Recipe.named(name, iterations=7)
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump(recipe.as_dict()))
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
        ({"lr_start": True}, "lr_start must be a number"),
        ({"lr_start": "fast"}, "recipe: lr_start is 'fast'; expected a number"),
        ({"rollouts": "2.5"}, "recipe: rollouts is '2.5'; expected a whole number"),
        ({"adam_beta1": 0.8}, "adam_beta1 is gone; version 0.2.0 or older has it"),
        ({"algorithm": "a3c"}, "unknown algorithm of a recipe 'a3c'; known: .*ppo, reinforce"),
        ({"effect_classes": 1}, "effect_classes must be true or false"),
        ({"gradient_norm": -1.0}, "gradient_norm must be a number above 0 .or none."),
        ({"epochs": 2}, "epochs and minibatches need algorithm ppo"),
        ({"minibatches_used": 2}, "minibatches_used must be at most minibatches .1., got 2"),
        ({"lr_shape": "geometric", "lr_end": 0.0}, "lr_end must be above 0"),
        ({"episode_end_s": 1.0}, "episode_end_s must be at least episode_start_s"),
        ({"teacher": 3}, "teacher must be the name of a scheduler, got 3"),
        ({"teacher_rollouts": 2}, "teacher_rollouts is gone; version 0.2.0 or older has it"),
        ({"kl_stop": 0.02}, "kl_stop is gone; version 0.2.0 or older has it"),
        ({"baseline_ridge": 0.01}, "baseline_ridge is gone"),
        ({"lr": 0.1}, "unknown field 'lr'"),
        ({"lr_strat": 0.1}, "unknown field 'lr_strat'; did you mean 'lr_start'"),
    ],
)
def test_bad_values_are_named(changes, message):
    with pytest.raises(ConfigError, match=message):
        Recipe.of("paper", changes)


def test_overrides_as_a_command_line_gives_them():
    texts = {"lr_start": "1e-2", "horizon_s": "none", "effect_classes": "false", "teacher": "fair:sticky=0"}
    recipe = Recipe.of("fast", texts)
    learning = recipe.learning
    assert (learning.lr_start, learning.horizon_s, learning.effect_classes) == (0.01, None, False)
    assert (recipe.imitation.teacher, recipe.imitation.teacher_parameters) == ("fair:sticky=0", {})
    recipe = Recipe.of("fast", {"teacher_parameters": "c0=2.5,c1=1"})
    assert recipe.imitation.teacher_parameters == {"c0": 2.5, "c1": 1}
    assert not Recipe.of("fast", {"teacher": "none"}).imitates


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- 1\n", "must hold fields"),
        ("", "must hold fields and values, got None"),
        ("a: [\n", "is not YAML"),
        ("rollouts: 0\n", "r.yaml: recipe: rollouts"),
    ],
)
def test_bad_files(content, message, tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message):
        Recipe.load(path)
    with pytest.raises(ConfigError, match=r"cannot read .*none\.yaml: No such file"):
        Recipe.load(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r"unknown recipe 'slow'; known: .*fast-batch, .*paper, .*fast"):
        Recipe.named("slow")


def test_a_field_of_several_parts_is_the_same_in_all_of_them():
    recipe = Recipe.named("fast", epochs=3)
    assert recipe.imitation.epochs == recipe.learning.epochs == 3
    assert Recipe.of_fields(**recipe.as_dict()) == recipe


def test_another_algorithm_keeps_the_fields_that_it_knows():
    recipe = Recipe.named("fast", iterations=9, algorithm="imitation")
    assert recipe.budget.iterations == 9
    assert not recipe.imitates  # it is the algorithm itself, there is nothing before it
    assert "lr_start" not in recipe.as_dict()
    with pytest.raises(ConfigError, match="unknown field 'lr_start'"):
        recipe.replace(lr_start=0.1)


@pytest.mark.parametrize("name", list_policies())
def test_recipes_of_stored_policies_can_be_read(name):
    stored = read_policy(name).card["recipe"]
    there = {key: value for key, value in stored.items() if GONE.get(key, ...) != value}
    assert Recipe.of_fields(**stored).as_dict().items() >= there.items()  # there may be newer fields


def test_limits_are_no_part_of_what_a_resumed_run_must_share():
    one, other = Recipe.named("fast", iterations=3), Recipe.named("fast", iterations=None, wall_seconds=5.0)
    assert one.without_limits() == other.without_limits()
    assert one.without_limits() != one.replace(validate_every=3).without_limits()
