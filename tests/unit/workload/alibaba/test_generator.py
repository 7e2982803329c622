"""Jobs generated after the statistics of the trace, and how parts of a trace are chosen."""

import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.workload import alibaba_like
from decima.workload.alibaba.generator import LARGEST_DAG, generate
from decima.workload.sources import parse_jobs


def stages(trace):
    return np.diff(trace.first_stage)


def test_a_seed_determines_the_trace():
    one, other = generate(200, 1), generate(200, 2)
    generate.cache_clear()
    again = generate(200, 1)
    for name in ("arrival_s", "first_stage", "num_tasks", "memory", "parent", "duration_ms"):
        assert np.array_equal(getattr(one, name), getattr(again, name))
    assert not np.array_equal(one.num_tasks[:50], other.num_tasks[:50])


def test_statistics_are_those_of_the_published_counts():
    trace = generate(5000)
    sizes = stages(trace)
    assert np.mean(sizes >= 4) == pytest.approx(0.285, abs=0.02)
    assert np.median(sizes) == 2
    assert trace.memory.mean() == pytest.approx(0.327, abs=0.01)
    assert np.quantile(trace.memory, 0.95) == 0.59
    assert np.median(trace.num_tasks) == 1
    assert np.quantile(trace.num_tasks, 0.95) == pytest.approx(176, rel=0.2)
    assert np.diff(trace.arrival_s).mean() == pytest.approx(0.2326, rel=0.05)
    assert trace.report.edges / trace.report.stages == pytest.approx(0.75, abs=0.1)


def test_the_mix_of_the_paper_has_its_large_jobs():
    sizes = stages(generate(5000, mix="paper"))
    assert np.mean(sizes >= 4) == pytest.approx(0.59, abs=0.02)
    assert 100 < sizes.max() <= LARGEST_DAG
    assert np.mean(sizes >= 100) == pytest.approx(0.006, abs=0.003)


def test_profiles_are_jobs_whose_stages_follow_their_parents():
    trace = generate(300, mix="paper")
    for job in range(300):
        profile = trace.profile(job)
        assert all(parent < index for index, stage in enumerate(profile.stages) for parent in stage.parents)
        assert profile.work_ms == pytest.approx(1000.0 * trace.work_s[job])
    assert trace.duration_ms.min() >= 500.0


def test_thinning_keeps_the_arrivals_of_what_is_kept():
    whole = alibaba_like(jobs=400)
    half, again, other = (alibaba_like(fraction=0.5, seed=seed, jobs=400) for seed in (1, 1, 2))
    names = [[job.name for job in each.jobs] for each in (half, again, other)]
    assert names[0] == names[1] != names[2]
    assert [len(each) for each in names] == [200, 200, 200]
    arrival = {job.name: job.arrival_ms for job in whole.jobs}
    assert all(arrival[job.name] == job.arrival_ms for job in half.jobs)
    assert half.label == "Alibaba-like (generated)"


def test_parts_and_windows_lie_inside_the_time_of_the_trace():
    trace = generate(400)
    train, test = trace.select("train")[0], trace.select("test")[0]
    assert len(train) + len(test) == 400
    assert trace.arrival_s[train].max() < trace.length_s / 2 <= trace.arrival_s[test].min()
    begins = set()
    for seed in range(5):
        chosen, begin = trace.select("test", seed=seed, window_s=10.0)
        assert trace.length_s / 2 <= begin <= trace.length_s - 10.0
        assert (trace.arrival_s[chosen] >= begin).all()
        assert (trace.arrival_s[chosen] <= begin + 10.0).all()
        begins.add(begin)
    assert len(begins) == 5


def test_texts_replay_or_draw():
    spec = parse_jobs("alibaba_like:part=test,fraction=0.5,jobs=200")
    assert spec.arrivals == "trace"
    expected = alibaba_like("test", 0.5, 7, jobs=200)
    assert [job.name for job in spec.workload(7).jobs] == [job.name for job in expected.jobs]
    assert parse_jobs("alibaba_like:n=5").arrivals == "batch"
    assert len(parse_jobs("alibaba_like:arrivals=trace,n=5,jobs=50").workload(0)) == 5
    assert parse_jobs("alibaba_like:n=5,interarrival_s=2").arrivals == "poisson"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("part=most", "part is 'most'; expected all, train or test"),
        ("fraction=0", "fraction is 0.0; expected a number above 0 and up to 1"),
        ("fraction=0.001,jobs=10", "no job of part 'all' is left at fraction 0.001"),
        ("window_s=1e9", "window_s is 1000000000.0; expected seconds above 0, at most"),
        ("jobs=0", "jobs is 0; expected an integer from 1 to 1,000,000"),
        ("mix=mine", "mix is 'mine'; expected public or paper"),
        ("trace_seed=-1", "trace_seed is -1; expected an integer of at least 0"),
        ("arrivals=trace,n=99,jobs=10", "n is 99; expected an integer from 1 to 10, the jobs of Alibaba-like"),
        ("arrivals=clocked", "arrivals is 'clocked'; expected batch or poisson or trace"),
        ("arrivals=trace,load=0.5,executors=3", "load and executors describe a stream"),
    ],
)
def test_options_out_of_range_are_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_jobs(f"alibaba_like:{text}").workload(0)
