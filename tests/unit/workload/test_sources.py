"""Every registered workload source, and the texts that say which jobs."""

import numpy as np
import pytest

from decima.core.errors import ConfigError, WorkloadError
from decima.workload import explicit, save, sources, write_profiles
from decima.workload.sources import (
    WorkloadSource,
    get_source,
    list_sources,
    parse_jobs,
    register_source,
    resolve_queries,
    resolve_sizes,
)


@pytest.fixture
def path(tmp_path):
    """File of profiles for the sources that need one."""
    write_profiles(get_source("embedded").profiles("2g"), tmp_path / "profiles.parquet")
    return str(tmp_path / "profiles.parquet")


@pytest.fixture(params=list_sources())
def source(request):
    found = get_source(request.param)
    if not found.available():  # fetched from the mirror where there is one
        request.getfixturevalue("trace_data" if found.name == "alibaba" else "tpch_data")
    if not found.available():
        pytest.skip(f"no data of {request.param}")
    return found


@pytest.fixture
def needed(source, request):
    """Options that the source cannot do without, from the fixtures of the same names."""
    return {option.name: request.getfixturevalue(option.name) for option in source.options if option.required}


def names(workload):
    return [job.name for job in workload.jobs]


def test_a_source_is_found_by_its_name_and_says_what_it_is(source):
    assert get_source(source.name) is source
    assert source.label.strip()
    assert len(source.doc) > 20
    assert len({option.name for option in source.options}) == len(source.options)


def test_profiles_are_complete_jobs_under_different_names(source, needed):
    profiles = source.profiles(**needed)
    assert len({profile.name for profile in profiles}) == len(profiles) > 0
    for profile in profiles:
        assert profile.num_tasks >= len(profile.stages) >= 1
        assert 0.0 < profile.critical_path_ms <= profile.work_ms < np.inf


def test_a_seed_determines_the_batch(source, needed):
    one, again, other = (source.batch(15, seed, **needed) for seed in (3, 3, 4))
    assert names(one) == names(again) != names(other)
    assert len(one) == 15
    assert one.initial.all()
    assert not one.arrival_ms.any()
    assert one.label == source.label
    assert {profile.name for profile in one.universe} <= {profile.name for profile in source.profiles(**needed)}


def test_a_seed_determines_the_stream_whose_gaps_have_the_given_mean(source, needed):
    one, again, other = (source.poisson(400, 20.0, seed, initial=2, **needed) for seed in (3, 3, 4))
    assert (names(one), one.arrival_ms.tolist()) == (names(again), again.arrival_ms.tolist())
    assert one.arrival_ms.tolist() != other.arrival_ms.tolist()
    assert len(one) == 402
    assert one.initial.sum() == 2
    gaps_s = np.diff(one.arrival_ms[1:]) / 1000.0
    assert all(gaps_s >= 0.0)
    assert abs(gaps_s.mean() - 20.0) < 3.0  # three standard errors
    assert abs(gaps_s.std() - 20.0) < 5.0  # exponential: as large as the mean


def test_a_batch_and_a_stream_of_a_seed_hold_the_same_jobs(source, needed):
    assert names(source.batch(12, 5, **needed)) == names(source.poisson(11, 3.0, 5, **needed))


def test_the_digest_stays(source, needed):
    assert source.digest(**needed) == source.digest(**needed)
    assert len(source.digest(**needed)) == 64
    int(source.digest(**needed), 16)


def test_texts_draw_what_calls_draw(source, needed):
    given = "".join(f",{name}={value}" for name, value in needed.items())
    assert names(parse_jobs(f"{source.name}:n=20{given}").workload(2)) == names(source.batch(20, 2, **needed))
    stream = parse_jobs(f"{source.name}:n=4,interarrival_s=3,initial=2{given}").workload(1)
    expected = source.stream(4, 3.0, 1, initial=2, **needed)
    assert (names(stream), stream.arrival_ms.tolist()) == (names(expected), expected.arrival_ms.tolist())
    with pytest.raises(ConfigError, match=r"has no option 'colour'; it has: arrivals, n, .*"):
        parse_jobs(f"{source.name}:colour=red")


def test_sizes_of_a_text_select_profiles():
    chosen = parse_jobs("synthetic:sizes=xs+3xl,n=30").workload(0)
    assert names(chosen) == names(get_source("synthetic").batch(30, 0, ["xs", "3xl"]))
    assert {name.split("-")[0] for name in names(chosen)} == {"xs", "3xl"}


def test_queries_of_a_text_select_profiles():
    chosen = parse_jobs("embedded:queries=2-3+17,n=30").workload(0)
    assert {name.split("-")[0] for name in names(chosen)} == {"q2", "q3", "q17"}
    assert resolve_queries("all") == tuple(range(1, 23)) == resolve_queries(range(1, 23))
    assert resolve_queries("20+1-3") == (20, 1, 2, 3)


@pytest.mark.parametrize("queries", ["0", "23", "3-1", "1+1", "", "1-", "x", [], [True], [2, 2]])
def test_unknown_queries_are_refused(queries):
    with pytest.raises(WorkloadError, match="expected 1 to 22, each once"):
        resolve_queries(queries)


def test_a_file_of_profiles_is_drawn_from(path):
    drawn = parse_jobs(f"file:{path},n=7")
    assert names(drawn.workload(3)) == names(get_source("embedded").batch(7, 3, "2g"))
    first = get_source("file").profiles(path)
    assert get_source("file").profiles(path)[0] is first[0]
    write_profiles(get_source("embedded").profiles("5g"), path)
    assert {profile.name[-2:] for profile in get_source("file").profiles(path)} == {"5g"}
    with pytest.raises(ConfigError, match="path is missing; expected file:path=VALUE"):
        parse_jobs("file:n=7")


def test_the_first_option_of_a_source_goes_without_its_key():
    assert parse_jobs("embedded:2g+5g,n=3").options == {"sizes": "2g+5g"}


def test_a_file_is_read_whatever_the_seed(tmp_path):
    workload = explicit(get_source("embedded").profiles("2g")[:2], [0.0, 4.0], label="two")
    save(workload, tmp_path / "two.json")
    spec = parse_jobs(str(tmp_path / "two.json"))
    assert spec.source is None
    assert [names(one) for one in spec.workloads([1, 2])] == [names(workload)] * 2


def test_a_range_of_gaps_is_understood_but_not_drawn():
    spec = parse_jobs("embedded:interarrival_s=20-45")
    assert (spec.arrivals, spec.interarrival_s) == ("poisson", (20.0, 45.0))
    assert parse_jobs("embedded:interarrival_s=1e-3").interarrival_s == 0.001
    with pytest.raises(ConfigError, match="a range of gaps is for training"):
        spec.workload(0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tpc", r"unknown jobs 'tpc'; did you mean 'tpch'\?; expected a workload source \(alibaba, alibaba_like, "),
        ("synthetic:xs,n", "'n' is not an option; expected KEY=VALUE"),
        ("synthetic:n=2,n=3", "n is given twice"),
        ("synthetic:arrivals=bursts", "arrivals is 'bursts'; expected batch or poisson"),
        ("synthetic:arrivals=batch,initial=2", "initial describe a stream"),
        ("synthetic:interarrival_s=often", "interarrival_s is 'often'; expected a number"),
    ],
)
def test_texts_that_mean_nothing(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_jobs(text)


def test_sizes_are_names_groups_or_lists():
    groups = {"small": ("a", "b")}
    for sizes, expected in (("b", ("b",)), ("small", ("a", "b")), ("c+small", ("c", "a", "b")), (["b"], ("b",))):
        assert resolve_sizes(sizes, ("a", "b", "c"), groups, "toy") == expected
    for sizes, message in (("d", "toy size 'd' is unknown; expected small or some of a, b, c"), ([], "no toy size")):
        with pytest.raises(WorkloadError, match=message):
            resolve_sizes(sizes, ("a", "b", "c"), groups, "toy")


def test_a_source_of_ones_own_needs_nothing_but_its_registration(monkeypatch):
    monkeypatch.setattr(sources.SOURCES, "_members", dict(sources.SOURCES._members))
    profiles = get_source("embedded").profiles("2g")[:3]
    register_source(WorkloadSource("toy", "toys", "Three small jobs.", lambda: profiles, lambda: "0" * 64, options=()))
    assert "toy" in list_sources()
    assert len(parse_jobs("toy:n=4").workload(0)) == 4
    with pytest.raises(ConfigError, match="has no option 'sizes'"):
        parse_jobs("toy:sizes=2g")
    with pytest.raises(WorkloadError, match="are not TPC-H queries"):
        get_source("toy").profile(10, 1)
