"""Event files that TensorBoard reads, written without it.

A file is a sequence of records, each of which frames one protocol-buffer message `Event`:

| bytes | what |
|---|---|
| 8 | length of the message, little-endian |
| 4 | masked CRC-32C of those 8 bytes |
| length | the message |
| 4 | masked CRC-32C of the message |

Of `Event` four fields are used: `wall_time` (1, double), `step` (2, varint), `file_version` (3, string; in the first
record only) and `summary` (5), a list of values (1) with a `tag` (1, string) and a `simple_value` (2, float).
"""

from __future__ import annotations

import math
import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import final

FILE_VERSION = "brain.Event:2"

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""Wire types of protocol buffers."""


@final
class EventWriter:
    """Appends to a new event file in a folder, which is made if need be; for several seeds, give each its own.

    What was written is on its way to the disk when a call returns: a run that is killed loses nothing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with EventWriter(folder) as writer:
    ...         writer.scalars(0, {"cvar": 0.25, "loss": 1.5})
    ...     [path.name.startswith("events.out.tfevents.") for path in Path(folder).iterdir()]
    [True]
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        now = time.time_ns()
        seconds, rest = divmod(now, 10**9)
        Path(folder).mkdir(parents=True, exist_ok=True)
        # TensorBoard reads a folder's files in the order of their names: the time comes first, and padded.
        name = f"events.out.tfevents.{seconds:010d}.{socket.gethostname()}.{os.getpid()}.{rest:09d}"
        self.path = Path(folder) / name
        self._file = self.path.open("xb")
        self._append(event(now / 1e9, version=FILE_VERSION))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers of a step, by their tags; a tag's part before a slash is its group."""
        self._append(event(time.time(), step=step, scalars=values))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> EventWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _append(self, message: bytes) -> None:
        self._file.write(record(message))
        self._file.flush()


def event(
    wall_time: float, *, step: int = 0, version: str | None = None, scalars: Mapping[str, float] | None = None
) -> bytes:
    """The message `Event`.

    >>> event(1.0, step=150, scalars={"a": 1.0}).hex(" ")
    '09 00 00 00 00 00 00 f0 3f 10 96 01 2a 0a 0a 08 0a 01 61 15 00 00 80 3f'
    """
    parts = [_tag(1, _FIXED64), struct.pack("<d", wall_time), _tag(2, _VARINT), _varint(step)]
    if version is not None:
        parts.append(_sized(3, version.encode()))
    if scalars is not None:
        parts.append(_sized(5, b"".join(_sized(1, _scalar(tag, value)) for tag, value in scalars.items())))
    return b"".join(parts)


def record(message: bytes) -> bytes:
    """A message with its length and checksums around it."""
    length = struct.pack("<Q", len(message))
    return b"".join([length, _checksum(length), message, _checksum(message)])


def crc32c(data: bytes) -> int:
    """The cyclic redundancy check with Castagnoli's polynomial (RFC 3720, Section 12.1).

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _table() -> tuple[int, ...]:
    """The remainders of all bytes, bits reflected."""
    table: list[int] = []
    for remainder in range(256):
        for _ in range(8):
            remainder = (remainder >> 1) ^ (0x82F63B78 if remainder & 1 else 0)
        table.append(remainder)
    return tuple(table)


_TABLE = _table()


def _checksum(data: bytes) -> bytes:
    """Masked, since the check of data that contains its own check says little."""
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _scalar(tag: str, value: float) -> bytes:
    try:
        packed = struct.pack("<f", value)
    except OverflowError:  # too large for 32 bits
        packed = struct.pack("<f", math.copysign(math.inf, value))
    return _sized(1, tag.encode()) + _tag(2, _FIXED32) + packed


def _sized(field: int, content: bytes) -> bytes:
    return _tag(field, _BYTES) + _varint(len(content)) + content


def _tag(field: int, wire: int) -> bytes:
    return _varint(field << 3 | wire)


def _varint(number: int) -> bytes:
    """Seven bits a byte, lowest first; negative numbers in 64-bit two's complement."""
    number &= 0xFFFFFFFFFFFFFFFF
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)
