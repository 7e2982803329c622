"""`decima.train`: one function for all systems, and what it returns."""

import pandas
import pytest

import decima
from decima.core.errors import ConfigError, DecimaError
from decima.learning.recipe import Recipe
from decima.learning.store import read_policy
from decima.learning.training import change_texts, system_of_jobs

BRIEF = {"teacher_iterations": 1, "validation_sequences": 2, "sequences": 1, "validate_every": 1}
SPARK, UNEQUAL, CLOUD = "synthetic:n=3,sizes=xs", "lachesis-batch:jobs=2,executors=3", "generated:n=4"


@pytest.mark.parametrize(
    ("jobs", "system", "options"),
    [
        (SPARK, "spark", {"executors": 4, "workers": 1}),
        (UNEQUAL, "heterogeneous", {"architecture": "fast"}),
        (CLOUD, "cloud", {"betas": "0.5"}),
    ],
)
def test_every_system_is_trained_by_one_function(jobs, system, options, tmp_path, request):
    if system == "heterogeneous":
        request.getfixturevalue("tpch_data")  # its jobs are DAGs of TPC-H queries
    recipe = BRIEF | ({"teacher_sequences": 2, "rollouts": 2} if system == "spark" else {})
    result = decima.train(jobs, iterations=2, set={"recipe": recipe}, seed=3, out=tmp_path / "run", **options)
    assert isinstance(result.curve, pandas.DataFrame)
    assert result.curve["iteration"].to_list() == [0, 1]
    assert result.path == tmp_path / "run" / "policy.weights.h5"
    assert (result.card["system"], result.card["learned"]["seed"]) == (system, 3)
    assert result.card["learned"]["from"].startswith("imitation of ")
    saved = read_policy(result.save(tmp_path / "other"))
    assert (saved.weights == result.trained.weights).all()
    assert saved.card["learned"] == result.card["learned"]
    if system == "spark":
        workload = decima.workload.synthetic_batch(3, 0, ["xs"])
        stored = f"decima:{result.path}"
        runs = [decima.simulate(workload, scheduler, executors=4).avg_jct_s for scheduler in (result.policy, stored)]
        assert runs[0] == runs[1] > 0
    elif system == "heterogeneous":
        assert result.policy.text == f"lachesis:policy={result.path}"
    else:
        assert result.policy.values["policy"] == str(result.path)


def test_jobs_say_their_system():
    expected = {"tpch:n=3": "spark", "jobs.json": "spark", UNEQUAL: "heterogeneous", "lachesis-stream": "heterogeneous"}
    expected |= {CLOUD: "cloud", "normal;burst": "cloud", "redrawn:trace=burst": "cloud", "mine.csv": "cloud"}
    assert {jobs: system_of_jobs(jobs) for jobs in expected} == expected


def test_changes_are_texts_values_or_groups():
    texts = ["recipe.lr_start=0.002", "recipe.horizon_s=none", "architecture.hidden=4+2", "settings.keep_warm=true"]
    flat = {
        "recipe.lr_start": 2e-3,
        "recipe.horizon_s": None,
        "architecture.hidden": [4, 2],
        "settings.keep_warm": True,
    }
    grouped: dict = {}
    for name, value in flat.items():
        group, _, key = name.partition(".")
        grouped.setdefault(group, {})[key] = value
    assert change_texts(texts) == change_texts(flat) == change_texts(grouped) == texts
    assert change_texts({"recipe": {"teacher_parameters": {"c0": 1, "c1": -0.5}}}) == [
        "recipe.teacher_parameters=c0=1,c1=-0.5"
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"jobs": SPARK, "vms": "table4"}, "training has no option 'vms' here; it has: architecture, executors, mode"),
        ({"jobs": UNEQUAL, "executors": 4}, "training has no option 'executors' here; it has: architecture"),
        ({"jobs": SPARK, "system": "clod"}, "unknown system 'clod'; did you mean 'cloud'"),
        ({"jobs": None}, "drawn from a source, expected its name, got NoneType"),
        ({"jobs": "trickle"}, "unknown jobs 'trickle'"),
        ({"jobs": SPARK, "seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"jobs": SPARK, "set": {"lr_start": 1}}, "expected a key that begins with settings. or recipe."),
        ({"jobs": SPARK, "set": {"settings.executors": 4}}, "use the option --executors instead"),
        ({"jobs": SPARK, "recipe": "slow"}, "unknown recipe 'slow'"),
        ({"jobs": SPARK, "set": {"recipe.iterations": None}}, "nothing ends the training"),
    ],
)
def test_mistakes_are_one_sentence(arguments, message):
    with pytest.raises(DecimaError, match=message.replace(".", r"\.")):
        decima.train(**arguments)


def test_a_recipe_may_be_made_before():
    own = Recipe.named("fast", iterations=1)
    with pytest.raises(ConfigError, match="lr_strat"):
        decima.train(SPARK, recipe=own, set={"recipe.lr_strat": 1})


def test_an_interrupted_training_says_after_how_many_iterations(tmp_path, monkeypatch):
    def interrupted(self, resume):
        raise KeyboardInterrupt

    monkeypatch.setattr("decima.learning.trainer.Trainer.train", interrupted)
    with pytest.raises(KeyboardInterrupt, match="interrupted after 0 iterations"):
        decima.train(SPARK, iterations=1, executors=2, out=tmp_path)
