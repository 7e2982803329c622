"""`decima schedulers`."""

from decima.policy import store
from decima.schedulers import describe_scheduler, list_schedulers, make_scheduler, scheduler_options
from tests.unit.cli.calls import refuse, run, succeed


def test_every_scheduler_is_listed_with_its_parameters():
    lines = run("schedulers").stdout.splitlines()
    names = [line.split()[0] for line in lines[:-1] if not line.startswith(" ")]
    assert names == list_schedulers()
    options = [option.name for scheduler in names for option in scheduler_options(scheduler)]
    parameters = [line.split() for line in lines if line.startswith(" ") and line.split()[0] not in options]
    numeric = [name for name in names if not scheduler_options(name)]
    made = [(name, value) for scheduler in numeric for name, value in make_scheduler(scheduler).values.items()]
    assert [(words[0], float(words[1])) for words in parameters] == made
    assert all(words[3] == "to" for words in parameters)
    assert lines[-1].startswith(f"{len(names)} schedulers")


def test_one_scheduler():
    text = run("schedulers", "naive_weighted_fair").stdout
    assert text.startswith(f"naive_weighted_fair  {describe_scheduler('naive_weighted_fair')}\n")
    assert "    alpha             1  -5 to 5" in text
    assert succeed("schedulers", "random") == f"random               {describe_scheduler('random')}"
    assert "unknown scheduler 'rando'" in refuse("schedulers", "rando")


def test_listing_the_learned_scheduler_reads_no_weights(monkeypatch):
    monkeypatch.setattr(store, "read_policy", None)
    lines = run("schedulers", "decima").stdout.splitlines()
    assert lines[0].startswith("decima               A learned policy: a graph neural network")
    assert [line.split()[0] for line in lines[1:]] == ["policy", "greedy"]
    assert run("schedulers").exit_code == 0
