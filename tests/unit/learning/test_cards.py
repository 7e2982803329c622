"""How policies were learned: the block ``learned`` of cards, and the table of stored policies."""

import json

import pytest

import decima
from decima.core.errors import ConfigError
from decima.learning.cards import COLUMNS, LEARNED, RANDOM, learned
from decima.learning.store import list_policies, read_card, stored_files

CURVE = [
    {"iteration": 9, "phase": "imitation", "cpu_s": 3.0, "wall_s": 2.0},
    {"iteration": 19, "phase": "ppo", "cpu_s": 8.0, "wall_s": 5.0},
]


def block(recipe, kept=20, curve=CURVE):
    return learned({"algorithm": "ppo"} | recipe, curve, iterations=20, kept_iteration=kept, seed=3)


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        ({}, RANDOM),
        ({"teacher": "fair", "teacher_iterations": 0}, RANDOM),
        ({"teacher": None, "teacher_iterations": 80}, RANDOM),
        ({"teacher": "fair", "teacher_iterations": 10}, "imitation of fair"),
        ({"start_policy": "tpch-stream", "teacher": "fair", "teacher_iterations": 0}, "warm start from tpch-stream"),
        ({"start_policy": "tpch-stream-random"}, "random weights by way of tpch-stream-random"),
        (
            {"start_policy": "tpch-stream-random", "teacher": "fair", "teacher_iterations": 1},
            "warm start from tpch-stream-random; imitation of fair",
        ),
    ],
)
def test_a_card_says_what_the_weights_come_from(recipe, expected):
    assert block(recipe)["from"] == expected


def test_the_algorithm_is_that_of_the_kept_iteration():
    expected = dict(zip(COLUMNS, ("imitation of fair", "ppo", 20, 20, 8.0, 5.0, 3), strict=True))
    teacher = {"teacher": "fair", "teacher_iterations": 10}
    assert block(teacher) == expected
    assert block(teacher, kept=10) == expected | {"algorithm": "imitation", "kept_iteration": 10}
    assert block(teacher, curve=[]) == expected | {"cpu_s": None, "wall_s": None}


@pytest.mark.parametrize("name", list_policies())
def test_every_stored_card_says_how_its_policy_was_learned(name):
    card = read_card(stored_files(name)[1])
    stored, recipe = card[LEARNED], card["recipe"]
    assert tuple(stored) == COLUMNS
    assert not {"seed", "iterations", "cpu_s", "wall_s"} & set(card)
    kept = card["curve"]["iteration"].index(stored["kept_iteration"] - 1)
    rows = [dict(zip(card["curve"], values, strict=True)) for values in zip(*card["curve"].values(), strict=True)]
    rows.append({"iteration": -1} | {key: stored[key] for key in ("cpu_s", "wall_s")})
    values = {key: stored[key] for key in ("iterations", "kept_iteration", "seed")}
    assert learned(recipe, rows, **values) == stored
    score = next(value for key, value in card["validation"].items() if key.startswith("score"))
    assert score == card["curve"]["val_greedy" if card["greedy"] else "val_sampled"][kept]
    if stored["from"] == RANDOM:
        assert recipe.get("teacher") is None or recipe["teacher_iterations"] == 0
        assert recipe.get("start_policy") is None


def test_table_of_stored_policies_has_a_row_per_policy():
    table = decima.models()
    assert table["name"].to_list() == list_policies()
    row = table.set_index("name").loc["tpch-batch-random"]
    assert (row["paper"], row["system"], row["from"], row["algorithm"]) == ("decima", "spark", RANDOM, "ppo")
    assert (row["iterations"], row["kept_iteration"], row["seed"]) == (1064, 960, 1)
    assert table.set_index("name").loc["idle-rare-long-2", "paper"] == "idle_slots"
    assert decima.models("cloud")["name"].to_list() == list_policies("cloud")
    with pytest.raises(ConfigError, match="no policy of system 'clud' is stored; did you mean 'cloud'"):
        decima.models("clud")


def test_cards_of_older_versions_leave_cells_empty(tmp_path, monkeypatch):
    folder = tmp_path / "models" / "mine"
    folder.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "decima-sched"\n')
    files = stored_files("tpch-batch")
    card = json.loads(files[1].read_text())
    del card[LEARNED]
    (folder / "old.json").write_text(json.dumps(card))
    (folder / "old.weights.h5").write_bytes(files[0].read_bytes())
    monkeypatch.chdir(tmp_path)
    row = decima.models().set_index("name").loc["old"]
    assert row["paper"] == "mine"
    assert row[["from", "algorithm"]].isna().all()
