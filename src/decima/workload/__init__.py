"""Jobs, their profiles, when they arrive, and where they come from.

    jobs = decima.workload.embedded_batch(n=20, seed=0)
    jobs = decima.workload.load("jobs.json")

The public names are resolved on first use: TPC-H reading needs pyarrow, describing needs pandas, and so on.
"""

from importlib import import_module
from typing import Any

# public name -> module of this package
_EXPORTS = {
    "Job": "jobs",
    "JobProfile": "profile",
    "PAPER_SIZES": "tpch.profiles",
    "RELEASED_SIZES": "tpch.profiles",
    "Stage": "profile",
    "SyntheticParameters": "synthetic",
    "Workload": "jobs",
    "alibaba_like": "alibaba.source",
    "alibaba_trace": "alibaba.source",
    "batch": "arrivals",
    "embedded_batch": "embedded",
    "embedded_poisson": "embedded",
    "embedded_profiles": "embedded",
    "explicit": "arrivals",
    "fetch_tpch": "tpch.raw",
    "load": "json_jobs",
    "measured_batch": "measured",
    "measured_poisson": "measured",
    "measured_profiles": "measured",
    "poisson": "arrivals",
    "prepare_tpch": "tpch.profiles",
    "read_profiles": "parquet",
    "save": "json_jobs",
    "synthetic_batch": "synthetic",
    "synthetic_poisson": "synthetic",
    "synthetic_profiles": "synthetic",
    "tpch_available": "tpch.profiles",
    "tpch_batch": "tpch.profiles",
    "tpch_poisson": "tpch.profiles",
    "tpch_profile": "tpch.profiles",
    "tpch_profiles": "tpch.profiles",
    "write_profiles": "parquet",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    """Resolve a public name on first use (PEP 562)."""
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_EXPORTS))
