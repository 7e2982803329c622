"""Trained policies on disk: `<name>.weights.h5` with the arrays and `<name>.json`, the card that describes them.

Those of the project lie in ``models/<paper>``; a name stands for one of them, whatever its paper.
Policies of all systems are stored alike. ``system`` in a card names the system whose ``policy.architecture`` describes
the network; that module is imported when such a policy is read. Reading needs no TensorFlow.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import importlib
import io
import json
import os
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decima.core.config import checkout_root
from decima.core.errors import ConfigError, PolicyError
from decima.core.files import atomic_write_bytes, atomic_write_text, plain, read_json
from decima.core.grammar import RENAMED
from decima.learning.perceptron import NetworkShape

if TYPE_CHECKING:  # lists of policies need neither
    import h5py
    import numpy as np

WEIGHTS, CARD = ".weights.h5", ".json"
FORMAT = 3  # of cards
_WEIGHTS_FORMAT = 1
# Written by `save_policy` itself.
_CARD_KEYS = ("format", "name", "system", "architecture", "parameters", "weights_sha256", "policy_sha256")
# A file of weights is their bytes and a few hundred more per array; what is far larger is not read at all.
_MOST_BYTES, _MOST_BYTES_PER_WEIGHT = 2**20, 16
_PACKAGE = Path(__file__).parents[1]
_LAST = "version 0.2.0 is the last one that has policies that correct a rule; try tpch-stream-entry-warm"
# Stored policies and a preset of earlier versions. Of others, NAME-random replaces NAME.
_SEEDS = {"": "", "-1": "-2", "-2": "-3"}
_GONE = dict.fromkeys(("tpch-stream-busy", "busy", "busy-entry", "busy-entry-1", "busy-entry-2"), _LAST)
_GONE |= {"busy-long": "expected tpch-stream-continuing", "lachesis-executors": "expected lachesis-random"}
_GONE |= {f"lachesis-short{seed}": f"expected lachesis-random{seed}" for seed in _SEEDS}
_GONE |= {
    f"{jobs}-classes-random{old}": f"expected {jobs}-classes-continuing{new}"
    for jobs in ("tpch", "alibaba")
    for old, new in _SEEDS.items()
}
_GONE |= {"lachesis-no-copies": "version 0.2.0 is the last one that has it"}
_GONE |= {f"lachesis-no-{part}": f"expected lachesis-random-no-{part}" for part in ("edges", "graph", "ranks")}
_GONE |= {
    f"tpch-stream-{before}{stage}{seed}": f"expected tpch-stream-{now}continuing{seed}"
    for before, now in (("entry", "entry-"), ("random", ""))
    for stage in ("", "-loads", "-long")
    for seed in _SEEDS.values()
}


@dataclass(frozen=True)
class StoredPolicy:
    """A policy as it was read."""

    name: str  # its name, that of the files
    architecture: Any  # shape of the network
    weights: np.ndarray  # float32 [parameters] in the order of ``architecture.shapes``
    card: dict[str, Any]  # everything in the card
    path: Path  # the file of the weights


def save_policy(path: str | os.PathLike, architecture: NetworkShape, weights: np.ndarray, card: dict) -> Path:
    """Write weights and card; both files are replaced atomically, weights first.

    Args:
        path: Folder and name of the policy; endings of the two files may be there or not.
        architecture: Shape of the network.
        weights: Float32 [parameters].
        card: How the policy came about, JSON values: training parameters, data hash, git revision, seed, training
            curve, evaluation. ``greedy``: whether to run it greedily. Numbers that are not finite become null.

    Returns:
        The file of the weights.

    Raises:
        PolicyError: Weights are not finite or do not fit, the card has keys that are written here, or is not JSON.
    """
    import numpy as np

    weights_path, card_path = _files(path)
    weights = np.asarray(weights)
    if weights.dtype != np.float32:
        raise PolicyError(f"weights of a policy must be float32, got {weights.dtype}")
    try:
        parts = architecture.split(weights)
    except ConfigError as error:
        raise PolicyError(str(error)) from error
    _require_finite(parts, weights_path)
    if taken := sorted(set(card) & set(_CARD_KEYS)):
        raise PolicyError(f"save_policy writes {', '.join(taken)} into the card itself; leave it out")
    entries = {
        "format": FORMAT,
        "name": _name(weights_path),
        "system": architecture.system,
        "architecture": architecture.as_dict(),
        "parameters": architecture.num_parameters,
        "weights_sha256": _checksum(weights),
    }
    entries["policy_sha256"] = _policy_checksum(entries)
    try:
        text = json.dumps(plain(entries | card), indent=2, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise PolicyError(f"the card of policy {entries['name']} cannot be written as JSON: {error}") from error
    import h5py

    content = io.BytesIO()  # on a full disk, h5py takes the process down when it closes a file
    with h5py.File(content, "w") as file:
        file.attrs["format"] = _WEIGHTS_FORMAT
        for name, values in parts.items():
            file.create_dataset(name, data=values)
    atomic_write_bytes(weights_path, content.getvalue())
    atomic_write_text(card_path, text + "\n")
    return weights_path


def read_policy(name_or_path: str | os.PathLike, network: type[NetworkShape] | None = None) -> StoredPolicy:
    """Weights and card of a stored policy, checked against each other.

    Args:
        name_or_path: A name among :func:`list_policies`, or a path with a folder or one of the two endings.
        network: What the card must describe; None: the architecture of the system that it names.

    Raises:
        PolicyError: No such policy, it is of another system, or its files are damaged or do not belong together.
    """
    weights_path, card_path = _find(name_or_path, None if network is None else network.system)
    card = read_card(card_path)
    architecture = _architecture(card, card_path, network or _network_of(card, card_path))
    weights = _read_weights(weights_path, architecture)
    checksum = _checksum(weights)
    if card.get("weights_sha256") != checksum:
        raise PolicyError(
            f"the weights in {weights_path} have checksum {checksum[:12]}..., {card_path.name} expects "
            f"{repr(card.get('weights_sha256'))[:12]}...: the two files are not of one policy"
        )
    checksum = _policy_checksum(card)
    if card.get("policy_sha256") != checksum:
        raise PolicyError(
            f"weights and architecture in {card_path} have checksum {checksum[:12]}..., the card says "
            f"{repr(card.get('policy_sha256'))[:12]}...: the architecture is not that of the policy"
        )
    return StoredPolicy(_name(weights_path), architecture, weights, card, weights_path)


def greedy_of(policy: StoredPolicy, greedy: bool | None = None) -> bool:
    """Whether a stored policy decides greedily: as requested, else by its card, else yes.

    Raises:
        PolicyError: The card says neither true nor false.
    """
    greedy = policy.card.get("greedy", True) if greedy is None else greedy
    if not isinstance(greedy, bool):
        raise PolicyError(f"the card of policy {policy.name} has greedy = {greedy!r}, expected true or false")
    return greedy


def list_policies(system: str | None = None) -> list[str]:
    """Sorted names of the policies, of one system or all, in checkout and package."""
    # A card that cannot be read is named, too: what is wrong with it is said when the policy is asked for.
    return [name for name, card in stored_cards().items() if system is None or _system_of(card) in (system, None)]


def stored_cards() -> dict[str, Path]:
    """Paths of the cards of all policies by name, sorted."""
    paths = [path for folder in reversed(_papers()) for path in folder.glob(f"*{WEIGHTS}")]
    return dict(sorted({_name(path): _files(path)[1] for path in paths}.items()))


def _system_of(card_path: Path) -> str | None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return read_json(card_path).get("system")
    return None


def _network_of(card: dict[str, Any], path: Path) -> type[NetworkShape]:
    """Class of the architecture that a card describes; the module of its system registers it."""
    system = card.get("system")
    if system not in NetworkShape.of_system and isinstance(system, str) and system.isidentifier():
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(f"decima.systems.{system}.policy.architecture")
    if system not in NetworkShape.of_system:
        raise PolicyError(f"{path} is the card of a policy of an unknown system, {reprlib.repr(system)}")
    return NetworkShape.of_system[system]


def _folders() -> list[Path]:
    """Folders of trained policies, in the checkout around the current folder and in the package."""
    folders = [_PACKAGE / "models"]
    if (root := checkout_root()) is not None:
        folders.insert(0, root / "models")
    if (root := checkout_root(_PACKAGE)) is not None:
        folders.append(root / "models")  # an editable install
    return list(dict.fromkeys(folders))


def _papers() -> list[Path]:
    return [paper for folder in _folders() for paper in sorted(folder.glob("*/"))]


def _name(path: Path) -> str:
    for ending in (WEIGHTS, CARD):
        if path.name.endswith(ending) and path.name != ending:
            return path.name.removesuffix(ending)
    return path.name


def _files(path: str | os.PathLike) -> tuple[Path, Path]:
    path = Path(path).expanduser()
    name = _name(path)
    return path.with_name(name + WEIGHTS), path.with_name(name + CARD)


def _find(name_or_path: str | os.PathLike, system: str | None) -> tuple[Path, Path]:
    text = os.fspath(name_or_path) if isinstance(name_or_path, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text.strip():
        raise PolicyError(f"a policy is given by its name or path, got {name_or_path!r:.60}")
    if isinstance(name_or_path, str) and Path(text).name == text and not text.endswith((WEIGHTS, CARD)):
        files = stored_files(text)
        if files is None and stored_files(f"{text}-random") is not None:
            raise PolicyError(f"policy {text!r} is gone: expected {text}-random, which was trained from scratch")
        if files is None and text in _GONE:
            raise PolicyError(f"policy {text!r} is gone: {_GONE[text]}")
        if files is None:
            known = list_policies(system)
            close = difflib.get_close_matches(text.lower(), known, n=3)
            hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
            stored = f"'decima models' lists all {len(known)}" if known else "none is stored"
            places = ", ".join(str(folder) for folder in _folders())
            raise PolicyError(f"unknown policy {text!r}{hint}; {stored} (in {places})")
    else:
        files = _files(text)
        if not any(path.exists() for path in files) and (stored := stored_files(_name(files[0]))) is not None:
            path = stored[0].with_name(_name(stored[0]))
            raise PolicyError(f"there is no policy {text}: {path.name} is stored as {path}, its name alone will do")
    for path, what in zip(files, ("weights", "card"), strict=True):
        if not path.is_file():
            raise PolicyError(f"policy {_name(path)} lacks its {what}: there is no file {path}")
    return files


def stored_files(name: str) -> tuple[Path, Path] | None:
    """Files of weights and card of a stored policy; None if both are missing."""
    candidates = (_files(paper / name) for paper in _papers())
    return next((files for files in candidates if any(path.exists() for path in files)), None)


def read_card(path: Path) -> dict[str, Any]:
    """Card of a policy.

    Raises:
        PolicyError: The file cannot be read, is not a JSON object or has another format.
    """
    try:
        card = read_json(path)
    except OSError as error:
        raise PolicyError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise PolicyError(f"{path} is not the card of a policy: no valid JSON ({error})") from error
    if not isinstance(card, dict):
        raise PolicyError(f"{path} is not the card of a policy: got {type(card).__name__}, expected an object")
    if card.get("format") != FORMAT:
        shown = reprlib.repr(card.get("format"))
        raise PolicyError(f"{path} has format {shown}, expected the card of a policy with {FORMAT}")
    return card | {"system": RENAMED.get(card.get("system"), card.get("system"))}


def _architecture(card: dict[str, Any], path: Path, network: type[NetworkShape]) -> Any:
    if (system := card.get("system")) != network.system:
        shown = reprlib.repr(system)
        if not isinstance(system, str):
            raise PolicyError(f"{path} is the card of a policy of system {shown}, expected {network.system!r}")
        raise PolicyError(
            f"policy {_name(path)!r} is of system {shown}, expected one of system {network.system!r}; "
            f"name it with --system {system}"
        )
    values = card.get("architecture")
    if not isinstance(values, dict):
        shown = reprlib.repr(values)
        raise PolicyError(f"{path} says nothing of the architecture: got {shown}, expected its fields by name")
    values = {name: value for name, value in values.items() if network.constants.get(name, ...) != value}
    if gone := sorted(set(values) & set(network.constants)):
        shown = f"{gone[0]} = {values[gone[0]]!r:.60}"
        raise PolicyError(f"{path} has {shown} in its architecture; version 0.2.0 or older reads it")
    defaults = NetworkShape.as_dict(network())
    if unknown := sorted(set(values) - set(defaults)):
        raise PolicyError(f"{path} describes an architecture with unknown fields: {', '.join(unknown)}")
    for name, value in values.items():
        if type(value) is not type(defaults[name]):
            expected = type(defaults[name]).__name__
            shown = reprlib.repr(value)
            raise PolicyError(f"{path} has {name} = {shown} in its architecture, expected a value like {expected}")
    try:
        return network(**values)
    except (ConfigError, TypeError, ValueError) as error:
        raise PolicyError(f"{path} describes no valid architecture: {error}") from error


def _read_weights(path: Path, architecture: NetworkShape) -> np.ndarray:
    import h5py
    import numpy as np

    most = _MOST_BYTES + _MOST_BYTES_PER_WEIGHT * architecture.num_parameters
    try:
        if (size := path.stat().st_size) > most:
            raise PolicyError(f"{path} has {size:,} bytes, its card's architecture expects at most {most:,}")
        with h5py.File(io.BytesIO(path.read_bytes()), "r") as file:
            datasets: dict[str, h5py.Dataset] = {}
            file.visititems(lambda name, item: datasets.update({name: item} if isinstance(item, h5py.Dataset) else {}))
            _require_inside(datasets, path)
            # Compressed, a data set of any size fits into a small file: it is read once its shape is known to be right.
            _require_shapes(datasets, architecture, path)
            arrays = {name: datasets[name][()] for name, _ in architecture.shapes}
    except PolicyError:
        raise
    except Exception as error:  # of damaged bytes, h5py raises whatever comes of them
        raise PolicyError(f"{path} is cut short or damaged: {error!r:.200}") from error
    _require_finite(arrays, path)
    return np.concatenate([values.reshape(-1) for values in arrays.values()])


def _require_inside(datasets: Mapping[str, h5py.Dataset], path: Path) -> None:
    """Refuse numbers that lie in other files: whichever is named would be opened."""
    for name, values in datasets.items():
        if values.external or values.is_virtual:
            raise PolicyError(f"{path} takes {name} from other files; expected all weights in this one")


def _require_shapes(datasets: Mapping[str, h5py.Dataset], architecture: NetworkShape, path: Path) -> None:
    expected = dict(architecture.shapes)
    for name in [*expected, *sorted(set(datasets) - set(expected))]:
        shape = datasets[name].shape if name in datasets else None
        if shape != expected.get(name):
            raise PolicyError(
                f"{path} holds weights of another architecture: {name} has shape {shape or 'none'}, "
                f"architecture {architecture.name} of its card expects {expected.get(name, 'none')}"
            )
        if datasets[name].dtype != "float32":
            raise PolicyError(f"{path} holds {datasets[name].dtype} in {name}, expected float32")


def _require_finite(arrays: dict[str, np.ndarray], path: Path) -> None:
    import numpy as np

    for name, values in arrays.items():
        if not np.isfinite(values).all():
            count = int((~np.isfinite(values)).sum())
            raise PolicyError(
                f"weights of {path}: {count} of {values.size} numbers in {name} are NaN or infinite, expected none"
            )


def _checksum(weights: np.ndarray) -> str:
    """SHA-256 of the flat float32 vector, little-endian, in hexadecimal."""
    return hashlib.sha256(weights.astype("<f4").tobytes()).hexdigest()


def _policy_checksum(card: dict[str, Any]) -> str:
    """SHA-256, in hexadecimal, over the card's architecture and the checksum of the weights."""
    content = {key: card[key] for key in ("architecture", "weights_sha256")}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
