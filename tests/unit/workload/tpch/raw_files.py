"""Files laid out like the TPC-H set, with checksums to match."""

import hashlib
import io

import numpy as np

from decima.workload.tpch import raw as tpch_raw


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
