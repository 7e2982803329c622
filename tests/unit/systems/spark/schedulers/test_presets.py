"""Presets, and defaults that depend on how jobs arrive."""

import pickle

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError
from decima.evaluation.run import score_matrix
from decima.evaluation.statistics import paired_change
from decima.evaluation.tuning import tune
from decima.learning.store import read_card, stored_files
from decima.systems.spark.policy.scheduler import TRAINED_ON
from decima.systems.spark.schedulers import (
    Preset,
    form_for,
    list_schedulers,
    make_scheduler,
    read_scheduler,
    register,
    scheduler_presets,
    scheduler_text,
)
from decima.systems.spark.settings import Settings
from decima.workload import Workload, embedded_batch, embedded_poisson, synthetic_batch, synthetic_poisson
from decima.workload.sources import get_source

JOBS = {"batch": synthetic_batch(5, seed=3), "stream": synthetic_poisson(6, 8.0, seed=3)}
WITH_PRESETS = [name for name in list_schedulers() if scheduler_presets(name)]


def decisions(scheduler, kind, **options):
    return decima.simulate(JOBS[kind], scheduler, 12, seed=1, log=True, **options).log.decision_lists()


@pytest.mark.parametrize(("name", "preset"), [("weighted_fair", "paper"), ("capped_srw", "plain")])
@pytest.mark.parametrize("source", ["embedded", "tpch"])
@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_no_default_is_beaten_by_its_other_form(name, preset, source, kind, request):
    if source == "tpch":
        request.getfixturevalue("tpch_data")
    source, seeds = get_source(source), range(400_000, 400_012)
    jobs = source.batches(seeds, 20) if kind == "batch" else source.streams(seeds, 100, 25)
    forms = [make_scheduler(name), make_scheduler(name, preset=preset)]
    default, other = score_matrix(jobs, forms, Settings.paper(executors=50))
    change, low, high = paired_change(default, other)
    assert low <= 0.0, f"{change:+.1f} % [{low:+.1f}, {high:+.1f}]"
    if kind == "stream":
        assert high < -5.0, f"{change:+.1f} % [{low:+.1f}, {high:+.1f}]"


EMBEDDED = {"batch": embedded_batch(4, seed=3), "stream": embedded_poisson(6, 8.0, seed=3)}
TPCH = {kind: Workload(jobs.jobs, "TPC-H") for kind, jobs in EMBEDDED.items()}


def test_policies_are_chosen_by_labels_that_workloads_have():
    labels = [get_source(name).label for name in ("tpch", "embedded")]
    assert list(TRAINED_ON) == labels
    for label, policies in TRAINED_ON.items():
        for kind, name in policies.items():
            card = read_card(stored_files(name)[1])
            assert card["label"].startswith(f"{label}, {kind} of "), name
            assert (card["task"]["executors"], card["task"]["objective"]) == (50, "avg_jct"), name


@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_decima_alone_is_the_policy_that_was_trained_on_the_workload(kind):
    alone = make_scheduler("decima")
    for jobs, policy in ((EMBEDDED, f"embedded-{kind}"), (TPCH, f"tpch-{kind}"), (JOBS, f"tpch-{kind}")):
        named = f"decima:{policy}"
        assert form_for(alone, jobs[kind]).values == make_scheduler(named).values
        results = [
            decima.simulate(jobs[kind], each, 12, seed=1, log=True).log.decision_lists()
            for each in (alone, pickle.loads(pickle.dumps(alone)), "decima", named)
        ]
        assert results[:3] == results[1:]
    assert form_for(alone, [EMBEDDED[kind], TPCH[kind]]).values["policy"] == f"tpch-{kind}"
    sampled = form_for(make_scheduler("decima:greedy=0"), EMBEDDED[kind])
    assert sampled.values == {"policy": f"embedded-{kind}", "greedy": 0}


@pytest.mark.parametrize(
    ("jobs", "line"),
    [
        (EMBEDDED["batch"], "decima: policy embedded-batch, trained on batches of TPC-H extrapolated from Spark"),
        (EMBEDDED["stream"], "decima: policy embedded-stream, trained on streams of TPC-H extrapolated from Spark"),
        (TPCH["batch"], "decima: policy tpch-batch, trained on batches of TPC-H"),
        (
            JOBS["stream"],
            "decima: policy tpch-stream, the default; no default is trained on streams of synthetic "
            "(decima:NAME takes another)",
        ),
    ],
)
def test_a_table_says_which_policy_was_taken(jobs, line):
    table = decima.compare(["fair", "decima"], jobs, executors=6, seeds=2)
    assert str(table).splitlines()[-1] == line
    assert line in table._repr_html_()
    assert "policy" not in str(decima.compare(["fair", "decima:embedded-batch"], jobs, executors=6, seeds=2))


@pytest.mark.parametrize("kind", JOBS)
@pytest.mark.parametrize("name", WITH_PRESETS)
def test_the_default_is_the_form_for_the_jobs(name, kind):
    default, form = make_scheduler(name), make_scheduler(name, preset=kind)
    other = make_scheduler(name, preset="stream" if kind == "batch" else "batch")
    assert form_for(default, JOBS[kind]).values == form_for(default, kind == "stream").values == form.values
    assert form_for(default, list(JOBS.values())).values == make_scheduler(name, preset="stream").values
    assert form_for(form, JOBS["batch"]) is form
    assert decisions(name, kind) == decisions(form, kind) != decisions(other, kind)
    assert decisions(pickle.loads(pickle.dumps(default)), kind) == decisions(form, kind)
    assert decisions(scheduler_text(default), kind) == decisions(form, kind)


def test_parameters_go_before_those_of_a_preset():
    assert read_scheduler("weighted_fair:paper,alpha=0.5") == ("weighted_fair", {"preset": "paper", "alpha": 0.5})
    paper = {"alpha": -1.0, "sticky": 1.0, "stage_rule": 0.0, "leftover": 1.0, "order": 0.0}
    assert make_scheduler("weighted_fair:paper").values == paper
    assert make_scheduler("weighted_fair:preset=paper,alpha=0.5").values == paper | {"alpha": 0.5}
    assert make_scheduler("weighted_fair:stream", preset="paper").values == paper
    same = make_scheduler("weighted_fair:alpha=-1")  # the two defaults differ by nothing else
    assert same.values == paper | {"sticky": 0.0, "order": 1.0}
    assert make_scheduler("capped_srw:plain,c0=2").values["c0"] == 2.0
    given = make_scheduler("capped_srw:c0=2")
    assert given.values == {"c0": 2.0}
    assert [form_for(given, streaming).values["c0"] for streaming in (False, True)] == [2.0, 2.0]


def test_a_default_with_options_stays_two_forms():
    sampled = make_scheduler("decima:greedy=0")
    assert [form_for(sampled, streaming).values for streaming in (False, True)] == [
        {"policy": "tpch-batch", "greedy": 0},
        {"policy": "tpch-stream", "greedy": 0},
    ]
    assert read_scheduler("decima:stream,greedy=1") == ("decima", {"preset": "stream", "greedy": True})
    assert make_scheduler("decima:tpch-stream").values == make_scheduler("decima:stream").values


def test_tuning_begins_where_the_default_for_such_jobs_is():
    for kind, jobs in JOBS.items():
        found = tune("capped_srw", [jobs], Settings(executors=6), budget=2)
        form = make_scheduler("capped_srw", preset=kind)
        assert np.array_equal(found.train["default"], score_matrix([jobs], [form], Settings(executors=6))[0])
    fixed = {"preset": "paper", "sticky": 0.0}
    found = tune("weighted_fair", [JOBS["batch"]], Settings(executors=6), budget=4, fixed=fixed)
    assert found.tuned == ("alpha",)
    assert found.parameters | {"alpha": 0.0} == make_scheduler("weighted_fair:paper,alpha=0,sticky=0").values
    assert found.make().values == found.parameters


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("weighted_fair:papre", "weighted_fair has no preset 'papre'; did you mean 'paper'?; it has: batch"),
        ("capped_srw:paper", "capped_srw has no preset 'paper'; it has: batch, stream, plain"),
        ("decima:preset=paper", "decima has no preset 'paper'; it has: batch, stream"),
        ("weighted_fair:paper,stream", "'stream' is not an option; expected KEY=VALUE"),
        ("fair:preset=paper", "preset is 'paper'; expected a number"),
    ],
)
def test_presets_that_nobody_has(text, message):
    with pytest.raises(ConfigError) as caught:
        make_scheduler(text)
    assert message in str(caught.value)


def test_presets_are_for_batches_and_streams():
    with pytest.raises(ConfigError, match="scheduler mine has presets batch; expected batch and stream among them"):
        register("mine", presets=[Preset("batch", "one of two", {})])
