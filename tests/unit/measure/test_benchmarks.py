"""Tables of growth and of peers: their form, and what is said of a peer that cannot be fetched."""

import sys

import pandas
import pytest

from benchmarks import growth, peers


def test_a_size_is_measured_and_compared_with_the_one_before():
    rows = [growth.measure(growth.nodes, size) | {"cpu_s": cpu_s} for size, cpu_s in ((10, 1.0), (100, 100.0))]
    table = growth.exponents([*rows, rows[0] | {"grows": "jobs"}])
    assert table["exponent"].fillna(-1.0).tolist() == [-1.0, 2.0, -1.0]
    assert table["units"].tolist() == [10, 100, 10]
    assert (table[["ns_per_unit", "peak_mb"]] > 0).all(axis=None)


def test_a_peer_that_cannot_be_fetched_is_left_out_with_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(peers.PEERS, "far", peers.Peer((), "", dict, "plan", source=str(tmp_path / "missing")))
    (tmp_path / "peers.csv").write_text(f"{','.join(peers.COLUMNS)}\nnear,work,plan,8.0,2.0,4.0\n")
    peers.main(["far"], tmp_path / "peers.csv", tmp_path)
    assert "far is left out: " in capsys.readouterr().err
    assert pandas.read_csv(tmp_path / "peers.csv")["peer"].tolist() == ["near"]


def test_a_peer_runs_in_its_environment_beside_this_project(tmp_path, monkeypatch):
    program = "found['work'] = float(given['arguments'][0])"
    monkeypatch.setitem(peers.PEERS, "near", peers.Peer((), program, lambda: {"work": 2.0}, "plan", arguments=("8",)))
    (tmp_path / "near" / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "near" / "venv" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "near" / "installed").touch()
    peers.main(["near", "--source", f"near={tmp_path}"], tmp_path / "peers.csv", tmp_path)
    (row,) = pandas.read_csv(tmp_path / "peers.csv").to_dict("records")
    assert row == dict(zip(peers.COLUMNS, ("near", "work", "plan", 8.0, 2.0, 4.0), strict=True))
    with pytest.raises(SystemExit):
        peers.main(["--source", f"unknown={tmp_path}"])
