"""Luo et al.: Learning to Optimize DAG Scheduling in Heterogeneous Environment (Lachesis)."""

from experiments.rooms import BASE_ROOMS, STORED_ROOMS

SYSTEM = "systems/heterogeneous"
ROOMS = (
    *(*BASE_ROOMS, *STORED_ROOMS, SYSTEM, f"-{SYSTEM}/appearance.py"),
    *(f"{SYSTEM}/{room}" for room in ("optimum", "policy", "schedulers")),
)
