"""Small hand-made and random job profiles for tests."""

import hashlib
import io

import numpy as np
from hypothesis import strategies as st

from decima.workload.profile import JobProfile, Stage
from decima.workload.tpch import raw as tpch_raw


def make_stage(name="a", tasks=2, parents=(), levels=(5,), fresh=None, first=None, rest=None):
    """A stage; waves left out hold the durations 3000, 2000 and 1000 ms at every level."""

    def lists(given, default):
        return tuple([default] for _ in levels) if given is None else tuple(given)

    return Stage(name, tasks, parents, levels, lists(fresh, 3000.0), lists(first, 2000.0), lists(rest, 1000.0))


def make_profile(*stages, name="job"):
    return JobProfile(name, stages or (make_stage(),), "test")


durations = st.lists(st.floats(0.0, 1e9) | st.integers(0, 100_000).map(float), max_size=4)


@st.composite
def stages(draw, index, name):
    """A stage whose parents come before it."""
    levels = sorted(draw(st.sets(st.integers(1, 200), min_size=1, max_size=4)))
    waves = [[draw(durations) for _ in levels] for _ in range(3)]
    for position in range(len(levels)):
        if not any(wave[position] for wave in waves):
            waves[draw(st.integers(0, 2))][position] = [draw(st.floats(0.0, 1e6))]
    parents = draw(st.sets(st.integers(0, index - 1), max_size=3)) if index else set()
    lists = [tuple(np.array(values, dtype=np.float64) for values in wave) for wave in waves]
    return Stage(name, draw(st.integers(1, 1000)), tuple(sorted(parents)), tuple(levels), *lists)


@st.composite
def job_profiles(draw, max_stages=6, shuffled=True):
    """A random DAG; the order of its stages need not be topological when `shuffled`."""
    count = draw(st.integers(1, max_stages))
    names = draw(st.lists(st.text(min_size=1, max_size=8), min_size=count, max_size=count, unique=True))
    made = [draw(stages(index, names[index])) for index in range(count)]
    if shuffled:
        place = draw(st.permutations(range(count)))  # stage i goes to place[i]
        moved = [None] * count
        for index, stage in enumerate(made):
            parents = tuple(place[parent] for parent in stage.parents)
            moved[place[index]] = Stage(
                stage.name, stage.num_tasks, parents, stage.levels, stage.fresh, stage.first, stage.rest
            )
        made = moved
    return JobProfile(draw(st.text(min_size=1, max_size=12)), tuple(made), draw(st.sampled_from(["json", "x"])))


# ---- files of TPC-H as they are published ----------------------------------------------------------------------------


def npy(value):
    """Bytes of a `.npy` file; anything but an array is stored as one pickled object."""
    stream = io.BytesIO()
    if not isinstance(value, np.ndarray):
        value = np.array(value, dtype=object)
    np.save(stream, value, allow_pickle=True)
    return stream.getvalue()


def write_set(folder, monkeypatch, files):
    """Write the files and make the package expect exactly these."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    monkeypatch.setattr(tpch_raw, "checksums", lambda: digests)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
