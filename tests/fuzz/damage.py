"""Strategies that damage good inputs: bytes, JSON trees and texts."""

import copy
import functools
import json

import pyarrow
from hypothesis import reject
from hypothesis import strategies as st
from pyarrow import parquet

DEEP = "deeper than any parser goes"
HOSTILE = (
    *(None, True, False, 0, 1, -1, 2, 0.5, -0.0, 200, 10_001),
    *(1e15, 1.0000001e15, 1.7e18, 1e300, 1e308, -1e308, float("nan"), float("inf"), 5e-324),
    *(2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, 10**12, 10**30, 10**400, -(2**63)),
    *("", "x", "5", "nan", "true", "é", "\x00", "\ud800", "a" * 5000, "__class__", DEEP),
    *([], {}, [[]], [None], [0], [1e308, 1e308], {"": None}, {"5": 1}, [0] * 3000, [2.7], ["\udfff"]),
)


def damaged_bytes(seeds, most=4):
    """One of the seeds after some edits."""
    return st.tuples(st.sampled_from(seeds), st.lists(_byte_edits(seeds), min_size=1, max_size=most)).map(_edited)


@functools.cache
def _places():
    # Beginnings and ends, where formats keep what decides about the rest, have their turn more often.
    return st.one_of(st.floats(0.0, 1.0), st.floats(0.0, 0.02), st.floats(0.98, 1.0))


def _byte_edits(seeds):
    other = st.sampled_from(seeds)
    return st.one_of(
        st.tuples(st.just("flip"), _places(), st.integers(1, 255)),
        st.tuples(st.just("set"), _places(), st.sampled_from([b"\x00", b"\xff", b"\x7f", b"\xff" * 4, b"\x00" * 8])),
        st.tuples(st.just("cut"), _places(), st.none()),
        st.tuples(st.just("delete"), _places(), st.integers(1, 64)),
        st.tuples(st.just("repeat"), _places(), st.integers(1, 64)),
        st.tuples(st.just("insert"), _places(), st.binary(min_size=1, max_size=16)),
        st.tuples(st.just("join"), _places(), other),
    )


def _edited(drawn):
    content, edits = drawn
    for kind, place, value in edits:
        at = min(int(place * len(content)), max(len(content) - 1, 0))
        before, after = content[:at], content[at:]
        if kind == "flip" and after:
            content = before + bytes([after[0] ^ value]) + after[1:]
        elif kind == "set":
            content = before + value + after[len(value) :]
        elif kind == "cut":
            content = before
        elif kind == "delete":
            content = before + after[value:]
        elif kind == "repeat":
            content = before + after[:value] + after
        elif kind == "insert":
            content = before + value + after
        elif kind == "join":
            content = before + value[int(place * len(value)) :]
    return content


def damaged_trees(documents, most=4):
    """One of the documents after some of its values, at any depth, were replaced, left out or moved."""
    edit = st.tuples(
        st.sampled_from(["replace", "replace", "replace", "scale", "delete", "repeat", "rename", "move"]),
        st.integers(0, 2**16),
        st.integers(0, 2**16),
        st.sampled_from(HOSTILE),
    )
    return st.tuples(st.sampled_from(documents), st.lists(edit, min_size=1, max_size=most)).map(_edited_tree)


def damaged_json(documents, most=4):
    """The same as bytes, or damage to the bytes themselves."""
    trees = damaged_trees(documents, most).map(json_bytes)
    return st.one_of(trees, trees, trees, damaged_bytes([json.dumps(document).encode() for document in documents]))


def damaged_lines(documents, most=4):
    """Lists of JSON values, damaged, as bytes with a value per line."""

    def as_lines(tree):
        return b"\n".join(map(json_bytes, tree if isinstance(tree, list) else [tree])) + b"\n"

    return damaged_trees(documents, most).map(as_lines)


def damaged_tables(tables, most=4):
    """Arrow tables, damaged inside their types, as bytes of parquet files."""

    def as_parquet(drawn):
        tree, table = drawn
        sink = pyarrow.BufferOutputStream()
        try:
            parquet.write_table(pyarrow.Table.from_pylist(tree, schema=table.schema), sink)
        except (pyarrow.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
            reject()  # not inside the types of the columns
        return sink.getvalue().to_pybytes()

    return st.sampled_from(tables).flatmap(
        lambda table: st.tuples(damaged_trees([table.to_pylist()], most), st.just(table)).map(as_parquet)
    )


def json_bytes(tree):
    return json.dumps(tree).replace(json.dumps(DEEP), "[" * 100_000).encode()


def _spots(tree):
    """Places of a tree: (parent, key) of every value in it."""
    spots, left = [], [tree]
    while left:
        node = left.pop()
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            spots.append((node, key))
            if isinstance(node[key], (dict, list)):
                left.append(node[key])
    return spots


def _edited_tree(drawn):
    document, edits = drawn
    root = [copy.deepcopy(document)]
    for kind, where, other, value in edits:
        spots = _spots(root)
        parent, key = spots[where % len(spots)]
        if kind == "replace" or parent is root:
            parent[key] = copy.deepcopy(value)
        elif kind == "scale":
            old = parent[key]
            number = isinstance(old, (int, float)) and not isinstance(old, bool)
            parent[key] = old * (-1, 10**6, 2**40, 0)[other % 4] if number else [old]
        elif kind == "delete":
            del parent[key]
        elif kind == "repeat" and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        elif kind == "rename" and isinstance(parent, dict):
            name = value if isinstance(value, str) else f"{key}s"
            parent[name] = parent.pop(key)
        else:
            source, name = spots[other % len(spots)]
            parent[key] = copy.deepcopy(source[name])
        if not root:
            root.append(None)
    return root[0]


def damaged_text(seeds, most=5):
    """One of the texts after pieces of it were replaced, left out, or joined with pieces of others."""
    marks = ("", ":", "=", ",", "+", "-", " ", "\x00", "\ud800")
    pieces = st.sampled_from([*marks, "nan", "inf", "none", "true", "1e308", "-1", "0", "9" * 5000])
    edit = st.tuples(_places(), st.integers(0, 8), st.one_of(pieces, st.text(max_size=4), st.sampled_from(seeds)))

    def edited(drawn):
        text, edits = drawn
        for place, length, piece in edits:
            at = int(place * len(text))
            text = text[:at] + piece + text[at + length :]
        return text[:20_000].encode("utf-8", "surrogatepass")

    return st.tuples(st.sampled_from(seeds), st.lists(edit, max_size=most)).map(edited)
