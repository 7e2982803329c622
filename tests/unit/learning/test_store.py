"""Trained policies on disk: what was written comes back, anything else is refused with a reason."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import h5py
import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError, DecimaError, PolicyError
from decima.learning import store
from decima.learning.cards import COLUMNS, LEARNED, RANDOM, learned
from decima.learning.perceptron import NetworkShape, Perceptron
from decima.learning.store import list_policies, read_card, read_policy, save_policy, stored_files
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.scheduler import load_policy

SMALL = Architecture.paper(embedding=4, hidden=(5,), score_hidden=(6,))


@pytest.fixture
def models(tmp_path, tmp_path_factory, monkeypatch):
    """Folder of a paper in the checkout around the current folder, empty; the package brings no policies."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "decima-sched"\n')
    (tmp_path / "models" / "decima").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(store, "_PACKAGE", tmp_path_factory.mktemp("site-packages") / "decima")
    return tmp_path / "models" / "decima"


@pytest.fixture
def weights():
    return SMALL.initial_weights(1)


@pytest.fixture
def saved(models, weights):
    return save_policy(models / "decima-batch", SMALL, weights, {"seed": 7})


def edit_card(path, **changes):
    card_path = path.with_name("decima-batch.json")
    card = json.loads(card_path.read_text())
    card.update(changes)
    card_path.write_text(json.dumps(card))


def refuse(policy, message):
    with pytest.raises(PolicyError, match=message):
        load_policy(policy)


def test_weights_architecture_and_card_come_back(models, saved, weights):
    assert saved == models / "decima-batch.weights.h5"
    assert sorted(path.name for path in models.iterdir()) == ["decima-batch.json", "decima-batch.weights.h5"]
    for name in ("decima-batch", saved, str(saved), models / "decima-batch", models / "decima-batch.json"):
        policy = read_policy(name)
        assert (policy.name, policy.architecture, policy.path) == ("decima-batch", SMALL, saved)
        np.testing.assert_array_equal(policy.weights, weights)
        assert policy.weights.dtype == np.float32
        assert policy.card["seed"] == 7
        assert policy.card["parameters"] == SMALL.num_parameters
    np.testing.assert_array_equal(read_policy(saved).weights, weights)


def test_card_takes_numpy_values_and_nothing_that_is_not_json(models, weights):
    card = {"score": np.float32(2.5), "curve": [{"jct": np.arange(2)}], "last": float("nan"), "few": (1, np.int64(2))}
    policy = read_policy(save_policy(models / "a", SMALL, weights, card))
    found = {key: policy.card[key] for key in card}
    assert found == {"score": 2.5, "curve": [{"jct": [0, 1]}], "last": None, "few": [1, 2]}
    with pytest.raises(PolicyError, match=r"card of policy b cannot be written as JSON.*object"):
        save_policy(models / "b", SMALL, weights, {"what": object()})
    with pytest.raises(PolicyError, match="save_policy writes architecture, name into the card itself"):
        save_policy(models / "b", SMALL, weights, {"name": "x", "architecture": {}})
    assert list_policies() == ["a"]


def test_bad_weights_are_not_written(models, weights):
    with pytest.raises(PolicyError, match="must be float32, got float64"):
        save_policy(models / "a", SMALL, weights.astype(float), {})
    with pytest.raises(PolicyError, match="weights, got an array of shape"):
        save_policy(models / "a", SMALL, weights[:-1], {})
    weights[3] = np.nan
    with pytest.raises(PolicyError, match="1 of 20 numbers in input/0/kernel are NaN or infinite"):
        save_policy(models / "a", SMALL, weights, {})
    assert list(models.iterdir()) == []


def test_a_failed_write_leaves_the_old_policy(saved, weights, monkeypatch):
    before = saved.read_bytes()

    def full(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr(h5py.Group, "create_dataset", full)
    with pytest.raises(OSError, match="no space left"):
        save_policy(saved, SMALL, 2 * weights, {})
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert len(list(saved.parent.iterdir())) == 2
    np.testing.assert_array_equal(read_policy(saved).weights, weights)


def test_card_says_how_the_policy_is_meant_to_be_run(models, weights):
    path = save_policy(models / "decima-batch", SMALL, weights, {"greedy": False})
    assert load_policy(path).greedy is False
    assert load_policy(path, greedy=True).greedy is True
    edit_card(path, greedy="no")
    refuse(path, "has greedy = 'no', expected true or false")


def test_unknown_names_suggest_close_ones(models, weights):
    refuse("decima", r"unknown policy 'decima'; none is stored \(in .*models")
    for name in ("decima-batch", "decima-stream", "other"):
        save_policy(models / name, SMALL, weights, {})
    refuse("decima-bach", r"'decima-bach'; did you mean 'decima-batch'.*'decima models' lists all 3")
    assert list_policies() == ["decima-batch", "decima-stream", "other"]
    for wrong in ("", " ", b"decima"):
        refuse(wrong, "given by its name or path")


def test_policies_of_the_package_are_found_after_those_of_the_checkout(models, weights, monkeypatch):
    packaged = store._PACKAGE / "models" / "decima"
    save_policy(packaged / "shipped", SMALL, weights, {})
    save_policy(packaged / "both", SMALL, weights, {"from": "package"})
    save_policy(models / "both", SMALL, weights, {"from": "checkout"})
    assert list_policies() == ["both", "shipped"]
    assert read_policy("both").card["from"] == "checkout"
    monkeypatch.chdir("/")
    assert read_policy("both").card["from"] == "package"
    assert read_policy("shipped").path == packaged / "shipped.weights.h5"


def test_a_path_from_before_the_folders_of_papers_names_the_new_one(models, saved):
    for old in ("models/decima-batch", "models/decima-batch.weights.h5", models / "lost" / "decima-batch.json"):
        with pytest.raises(
            PolicyError, match=r"there is no policy .*: decima-batch is stored as .*models/decima/decima-b"
        ):
            read_policy(old)
    with pytest.raises(PolicyError, match="policy other lacks its weights"):
        read_policy("models/other")


def test_missing_files_are_named(models, saved):
    refuse(models / "nothing", r"policy nothing lacks its weights: there is no file .*nothing.weights")
    (models / "decima-batch.json").unlink()
    refuse("decima-batch", "policy decima-batch lacks its card: there is no file")
    saved.unlink()
    refuse("decima-batch", "unknown policy")


def test_flipped_bytes_never_give_other_weights(saved, weights):
    content = bytearray(saved.read_bytes())
    refused = 0
    for position in range(0, len(content), 97):
        broken = content.copy()
        broken[position] ^= 0x55
        saved.write_bytes(broken)
        try:
            found = read_policy(saved).weights
        except DecimaError:
            refused += 1
        else:
            np.testing.assert_array_equal(found, weights)
    assert refused > 5


def test_weights_of_another_architecture_are_refused(models, saved):
    other = SMALL.replace(embedding=3)
    save_policy(models / "other", other, other.initial_weights(0), {})
    os.replace(models / "other.weights.h5", saved)
    refuse(saved, r"another architecture: input/0/kernel has shape \(5, 3\).*expects \(5, 4\)")
    none = SMALL.replace(limit="none")
    save_policy(models / "other", none, none.initial_weights(0), {})
    os.replace(models / "other.weights.h5", saved)
    refuse(saved, r"w/0/kernel has shape none.*expects \(13, 6\)")
    save_policy(models / "other", SMALL, SMALL.initial_weights(0), {})
    os.replace(models / "other.weights.h5", saved)
    edit_card(saved, architecture=none.as_dict())
    refuse(saved, r"w/0/bias has shape \(6,\).*expects none")


def test_weights_of_another_policy_are_refused(models, saved):
    save_policy(models / "other", SMALL, SMALL.initial_weights(2), {})
    os.replace(models / "other.weights.h5", saved)
    refuse(saved, r"checksum [0-9a-f]{12}\.\.\., decima-batch.json expects")


def test_weights_that_are_not_finite_or_not_float32_are_refused(saved):
    with h5py.File(saved, "r+") as file:
        file["q/0/bias"][2] = np.inf
    refuse(saved, "1 of 6 numbers in q/0/bias are NaN or infinite")
    with h5py.File(saved, "r+") as file:
        del file["q/0/bias"]
        file.create_dataset("q/0/bias", data=np.zeros(6))
    refuse(saved, "holds float64 in q/0/bias, expected float32")


def card_of(architecture):
    return '{"format": 3, "system": "spark", "architecture": ' + architecture + "}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no valid JSON"),
        ("{", "no valid JSON"),
        ("[1]", "got list, expected an object"),
        ("{}", "format None, expected the card of a policy with 3"),
        ('{"format": 2}', "format 2, expected"),
        ("[" * 100_000, "no valid JSON"),
        ('{"format": ' + "[" * 500 + "]" * 500 + "}", "format .*, expected"),
        ('{"format": 3}', "of a policy of system None, expected 'spark'"),
        ('{"format": 3, "system": "spark"}', "says nothing of the architecture: got None"),
        (card_of('{"depth": 3}'), "unknown fields: depth"),
        (card_of('{"residual": "capped_srw"}'), "residual = 'capped_srw' in its architecture; version 0.2.0 or older"),
        (card_of('{"embedding": "16"}'), "embedding = '16' in its architecture.* like int"),
        (card_of('{"limit": "job"}'), "no valid architecture: limit must be one of"),
        (card_of('{"hidden": ["x"]}'), "no valid architecture"),
        (card_of('{"hidden": [2.7]}'), "hidden must be in whole numbers from 1 to 65536"),
        (card_of('{"score_hidden": [0]}'), "score_hidden must be in whole numbers from 1"),
        (card_of('{"max_executors": 1000000000000}'), "max_executors .* to 1000000, got 1000"),
    ],
)
def test_broken_cards_are_refused(saved, text, message):
    saved.with_name("decima-batch.json").write_text(text)
    refuse(saved, r"decima-batch\.json.*" + message)


@pytest.mark.parametrize("change", [{"durations": False}, {"feature_log": True}, {"max_executors": 100}])
def test_an_architecture_of_the_same_shapes_is_not_mistaken_for_that_of_the_policy(saved, change):
    assert SMALL.replace(**change).shapes == SMALL.shapes
    edit_card(saved, architecture=SMALL.replace(**change).as_dict())
    refuse(saved, "the architecture is not that of the policy")


def test_a_large_array_is_refused_before_it_is_read(saved):
    with h5py.File(saved, "r+") as file:
        file.create_dataset("more", shape=(10**10,), dtype=np.float32, chunks=(2**20,), compression="gzip")
    refuse(saved, r"more has shape \(10000000000,\).*expects none")


def test_weights_in_other_files_are_refused_before_one_is_opened(saved, tmp_path):
    os.mkfifo(tmp_path / "pipe")  # to open it would wait for ever
    with h5py.File(saved) as file:
        parts = {}
        file.visititems(lambda name, item: parts.update({name: item[()]} if isinstance(item, h5py.Dataset) else {}))
    first = next(iter(parts))

    def rewrite(make):
        with h5py.File(saved, "w") as file:
            for name, values in parts.items():
                if name == first:
                    make(file, name, values)
                else:
                    file.create_dataset(name, data=values)

    def external(file, name, values):
        space, plist = h5py.h5s.create_simple(values.shape), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_external(str(tmp_path / "pipe").encode(), 0, values.nbytes)
        group = file.require_group(name.rpartition("/")[0])
        h5py.h5d.create(group.id, name.rpartition("/")[2].encode(), h5py.h5t.IEEE_F32LE, space, plist)

    def virtual(file, name, values):
        layout = h5py.VirtualLayout(values.shape, np.float32)
        layout[...] = h5py.VirtualSource(str(tmp_path / "pipe"), "x", values.shape)
        file.create_virtual_dataset(name, layout)

    def linked(file, name, values):
        file[name] = h5py.ExternalLink(str(tmp_path / "pipe"), "x")

    for make, message in (
        (external, f"takes {first} from other files; expected all weights in this one"),
        (virtual, f"takes {first} from other files"),
        (linked, f"{first} has shape none"),
    ):
        rewrite(make)
        refuse("decima-batch", message)


def test_a_file_far_larger_than_its_weights_is_not_read(saved):
    with open(saved, "r+b") as file:
        file.truncate(2**40)
    refuse(saved, r"has 1,099,511,627,776 bytes, its card's architecture expects at most")


def test_card_without_checksum_is_refused(saved):
    edit_card(saved, policy_sha256=None)
    refuse(saved, r"the card says None\.\.\.: the architecture is not")
    edit_card(saved, weights_sha256=None)
    refuse(saved, r"expects None\.\.\.: the two files are not of one policy")


def printed(code):
    """What a program in another process prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_loading_needs_no_tensorflow(saved):
    code = f"import sys, decima; decima.load_policy({str(saved)!r}); "
    heavy = "sorted({'tensorflow', 'keras', 'spektral', 'matplotlib'} & set(sys.modules))"
    assert printed(f"{code} print({heavy})") == "[]"


@dataclass(frozen=True)
class Toy(NetworkShape):
    """The architecture of another system."""

    system: ClassVar[str] = "toy"
    name: str = "toy"
    width: int = 3

    @property
    def perceptrons(self):
        return (Perceptron("only", (self.width, 1)),)


def test_policies_of_other_systems_are_stored_alike_and_not_taken_for_decimas(models, weights):
    toy = Toy(width=2)
    path = save_policy(models / "toy", toy, toy.initial_weights(0), {})
    stored = read_policy("toy", Toy)
    assert stored.architecture == toy
    assert np.array_equal(stored.weights, toy.initial_weights(0))
    assert read_policy("toy").architecture == toy  # its class is registered
    save_policy(models / "ours", SMALL, SMALL.initial_weights(0), {})
    assert (list_policies("toy"), list_policies("spark"), list_policies()) == (["toy"], ["ours"], ["ours", "toy"])
    refuse(path, "policy 'toy' is of system 'toy', expected one of system 'spark'; name it with --system toy")
    with pytest.raises(PolicyError, match=r"policy 'ours' is of system 'spark', expected one of system 'toy'"):
        read_policy("ours", Toy)


# Of stored policies that earlier versions had; others of these names are answered by store._GONE.
EARLIER = ["busy-16-queries", "busy-23", "busy-hint", "busy-mixed", "busy-no-durations", "tpch-free", "tpch-p90"]
EARLIER += ["tpch-simplified", "trace-fewer-executors", "trace-fewer-jobs"]


@pytest.mark.parametrize("name", [*EARLIER, *store._GONE])
def test_an_earlier_policy_names_a_stored_one_or_the_last_version_that_has_it(name):
    with pytest.raises(PolicyError, match=f"policy '{name}' is gone: ") as refused:
        read_policy(name)
    answer = re.search(r"expected ([\w-]+)|(version 0\.2\.0 is the last one that has )", str(refused.value))
    assert answer[2] or stored_files(answer[1])


def test_present_policies_of_other_systems_say_whose_they_are():
    with pytest.raises(PolicyError, match="policy 'cloud-burst' is of system 'cloud', expected one of system 'spark'"):
        load_policy("cloud-burst")


def test_a_card_with_the_earlier_name_of_a_system_is_read(saved):
    edit_card(saved, system="unequal")
    assert store.read_card(saved.with_name("decima-batch.json"))["system"] == "heterogeneous"


def test_an_unknown_system_is_named(saved):
    for system in ("moon", "no name", 3, None):
        edit_card(saved, system=system)
        with pytest.raises(PolicyError, match=r"decima-batch\.json is the card of a policy of an unknown system"):
            read_policy(saved)


@pytest.mark.parametrize("name", ["tpch-batch", "lachesis-batch"])
def test_reading_a_policy_loads_nothing_of_another_system(name):
    code = (
        f"import sys; from decima.learning.store import read_policy; read_policy({name!r}); "
        "print({name.split('.')[2] for name in sys.modules if name.startswith('decima.systems.')})"
    )
    assert printed(code) == repr({read_policy(name).card["system"]})


# ---- how policies were learned: the block `learned` of cards, and the table of stored policies ----------------------


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
        ({"start_policy": "tpch-batch-random"}, "random weights by way of tpch-batch-random"),
        (
            {"start_policy": "tpch-batch-random", "teacher": "fair", "teacher_iterations": 1},
            "warm start from tpch-batch-random; imitation of fair",
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
