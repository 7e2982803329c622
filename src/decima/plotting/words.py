"""Words of labels and captions; needs no matplotlib."""

from __future__ import annotations

import re


def job_label(name: str) -> str:
    """Name of a job for people: ``q9-100g`` becomes ``Q9, 100 GB``, other names stay."""
    match = re.fullmatch(r"q0*(\d+)(?:-(\d+(?:\.\d+)?)g)?", str(name))
    if not match:
        return str(name)
    return f"Q{match[1]}, {match[2]} GB" if match[2] else f"Q{match[1]}"


def count(number: int, noun: str) -> str:
    """Text of a number and a noun: ``1 seed``, ``20 seeds``, ``5 batches``, ``3 queries``."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith(("cy", "ry")):
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}{'es' if noun.endswith(('ch', 's', 'x')) else 's'}"
