"""Jobs, their profiles, when they arrive, and where they come from.

    >>> import decima
    >>> jobs = decima.workload.embedded_batch(n=20, seed=0)
    >>> len(jobs)
    20

The public names are resolved on first use: TPC-H reading needs pyarrow, describing needs pandas, and so on.
"""

from decima import lazy_names

_EXPORTS = {
    "alibaba.source": ["alibaba_like", "alibaba_trace"],
    "arrivals": ["batch", "explicit", "poisson"],
    "embedded": ["embedded_batch", "embedded_poisson", "embedded_profiles"],
    "jobs": ["Job", "Workload"],
    "json_jobs": ["load", "save"],
    "measured": ["measured_batch", "measured_poisson", "measured_profiles"],
    "parquet": ["read_profiles", "write_profiles"],
    "profile": ["JobProfile", "Stage"],
    "synthetic": ["SyntheticParameters", "synthetic_batch", "synthetic_poisson", "synthetic_profiles"],
    "tpch.profiles": [
        "PAPER_SIZES",
        "RELEASED_SIZES",
        "prepare_tpch",
        "tpch_available",
        "tpch_batch",
        "tpch_poisson",
        "tpch_profile",
        "tpch_profiles",
    ],
    "tpch.raw": ["fetch_tpch"],
}

__all__ = sorted(name for names in _EXPORTS.values() for name in names)

__getattr__, __dir__ = lazy_names(__name__, _EXPORTS)
