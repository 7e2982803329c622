"""Readers of the block formats that Spark writes with lz4 and snappy, which differ from these libraries' own.

Source: `LZ4BlockOutputStream` of lz4-java and `SnappyOutputStream` of snappy-java.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import cramjam

MAX_BLOCK_BYTES = 2**26  # lz4-java allows 32 MiB; damaged lengths must not ask for gigabytes
_LZ4_HEADER = struct.Struct("<8sBIII")
_LZ4_MAGIC = b"LZ4Block"
_LZ4_RAW, _LZ4_PACKED = 0x10, 0x20
_SNAPPY_HEADER_BYTES = 16
_SNAPPY_MAGIC = b"\x82SNAPPY\x00"


def lz4_blocks(path: Path) -> Iterator[bytes]:
    """Decompress the blocks of an lz4 file one by one; their checksums (xxHash) are not verified.

    Raises:
        ValueError: the file is damaged or cut; the blocks before that place have been given.
    """
    with open(path, "rb") as file:
        while header := file.read(_LZ4_HEADER.size):
            if len(header) < _LZ4_HEADER.size:
                raise ValueError("cut inside the header of an lz4 block")
            magic, token, packed, size, _ = _LZ4_HEADER.unpack(header)
            method = token & 0xF0
            if magic != _LZ4_MAGIC or method not in (_LZ4_RAW, _LZ4_PACKED):
                raise ValueError("an lz4 block has no valid header")
            block = _body(file, packed, size, "lz4")
            if method == _LZ4_PACKED:
                block = _decompress(cramjam.lz4.decompress_block, block, size, output_len=size)
            if block:  # an empty one marks the end of a stream; another may follow
                yield block


def snappy_blocks(path: Path) -> Iterator[bytes]:
    """Decompress the blocks of a snappy file one by one.

    Raises:
        ValueError: the file is damaged or cut; the blocks before that place have been given.
    """
    with open(path, "rb") as file:
        while head := file.read(4):
            if head == _SNAPPY_MAGIC[:4]:
                if not (head + file.read(_SNAPPY_HEADER_BYTES - 4)).startswith(_SNAPPY_MAGIC):
                    raise ValueError("a snappy stream has no valid header")
                continue
            if len(head) < 4:
                raise ValueError("cut inside the length of a snappy block")
            block = _body(file, int.from_bytes(head, "big"), 0, "snappy")
            size = _decompress(cramjam.snappy.decompress_raw_len, block, None)
            if size > MAX_BLOCK_BYTES:
                raise ValueError(f"a snappy block claims {size} bytes")
            yield _decompress(cramjam.snappy.decompress_raw, block, size)


def _body(file: BinaryIO, packed: int, size: int, codec: str) -> bytes:
    if max(packed, size) > MAX_BLOCK_BYTES:
        raise ValueError(f"an {codec} block claims {max(packed, size)} bytes")
    block = file.read(packed)
    if len(block) < packed:
        raise ValueError(f"cut inside a block of {codec}")
    return block


def _decompress(function, block: bytes, size: int | None, **options):
    try:
        result = function(block, **options)
    except cramjam.DecompressionError as error:
        raise ValueError(f"a block cannot be decompressed: {error}") from error
    if isinstance(result, int):
        return result
    if len(result) != size:
        raise ValueError(f"a block has {len(result)} bytes; its header says {size}")
    return bytes(result)
