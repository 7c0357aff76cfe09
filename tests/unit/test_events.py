"""Event files: the checksum's published vectors, a message encoded by hand, and files read by another parser."""

import math
import struct
from pathlib import Path
from typing import Any

import pytest

from ocerl.gradient.events import EventWriter, crc32c, event, record

READ_COMMAND = bytes.fromhex(
    "01c00000 00000000 00000000 00000000 14000000 00000400 00000014 00000018 28000000 00000000 02000000 00000000"
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        # RFC 3720, Appendix B.4 (which lists the bytes, lowest first)
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
        (READ_COMMAND, 0xD9963A56),
        # the check value of the catalogues of CRC algorithms
        (b"123456789", 0xE3069283),
        (b"", 0),
    ],
)
def test_crc32c_of_published_vectors(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


def test_an_event_by_hand() -> None:
    expected = (
        "09 000000000000f03f"  # field 1, eight bytes: 1.0
        "10 9601"  # field 2, varint: 150 = 0b1_0010110
        "2a 0a"  # field 5, ten bytes
        "0a 08"  # field 1, eight bytes
        "0a 01 61"  # field 1, one byte: 'a'
        "15 000000c0"  # field 2, four bytes: -2.0
    )
    assert event(1.0, step=150, scalars={"a": -2.0}) == bytes.fromhex(expected)


def test_the_first_event_by_hand() -> None:
    expected = bytes.fromhex("09 000000000000f03f 10 00 1a 0d") + b"brain.Event:2"
    assert event(1.0, version="brain.Event:2") == expected


def test_a_negative_step_takes_ten_bytes() -> None:
    assert event(0.0, step=-1)[9:] == b"\x10" + b"\xff" * 9 + b"\x01"


def test_a_record_by_hand() -> None:
    """The mask of 0x8A9136AA: rotated right by 15 it is 0x6D551522, and 0x6D551522 + 0xA282EAD8 = 0x10FD7FFFA."""
    message = bytes(32)
    framed = record(message)
    assert struct.unpack("<Q", framed[:8]) == (32,)
    assert framed[12:44] == message
    assert struct.unpack("<I", framed[44:]) == (0x0FD7FFFA,)


def varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a message: numbers, and bytes where there may be a message inside."""
    found: list[tuple[int, Any]] = []
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        match key & 7:
            case 0:
                value, at = varint(data, at)
            case 1:
                value, at = struct.unpack_from("<d", data, at)[0], at + 8
            case 2:
                size, at = varint(data, at)
                value, at = data[at : at + size], at + size
            case 5:
                value, at = struct.unpack_from("<f", data, at)[0], at + 4
            case wire:
                raise AssertionError(f"wire type {wire}")
        found.append((key >> 3, value))
    assert at == len(data)
    return found


def bitwise_crc(data: bytes) -> int:
    """Long division, bit by bit, from the polynomial in its usual order."""
    remainder = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            feedback = (remainder >> 31) ^ (byte >> bit & 1)
            remainder = (remainder << 1 & 0xFFFFFFFF) ^ (0x1EDC6F41 if feedback else 0)
    return int(f"{remainder ^ 0xFFFFFFFF:032b}"[::-1], 2)


def unmasked(stored: bytes) -> int:
    rotated = (int.from_bytes(stored, "little") - 0xA282EAD8) % 2**32
    return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF


def read(path: Path) -> list[list[tuple[int, Any]]]:
    """The events of a file, checksums checked."""
    data, events = path.read_bytes(), []
    while data:
        size = int.from_bytes(data[:8], "little")
        message = data[12 : 12 + size]
        assert unmasked(data[8:12]) == bitwise_crc(data[:8])
        assert unmasked(data[12 + size : 16 + size]) == bitwise_crc(message)
        events.append(fields(message))
        data = data[16 + size :]
    return events


def scalars(of: list[tuple[int, Any]]) -> dict[str, float]:
    values = [dict(fields(value)) for _, value in fields(dict(of)[5])]
    return {value[1].decode(): value[2] for value in values}


def test_a_file_reads_back(tmp_path: Path) -> None:
    told = [(0, {"risk/cvar": 0.25, "loss": -1.5}), (300, {"größe": 1e30}), (2**40, {})]
    with EventWriter(tmp_path / "deeper" / "seed-3") as writer:
        for step, values in told:
            writer.scalars(step, values)
    first, *rest = read(writer.path)
    assert dict(first)[3] == b"brain.Event:2"
    assert [dict(one)[2] for one in rest] == [step for step, _ in told]
    assert [scalars(one) for one in rest] == [
        pytest.approx({tag: struct.unpack("<f", struct.pack("<f", x))[0] for tag, x in values.items()})
        for _, values in told
    ]
    times = [dict(one)[1] for one in (first, *rest)]
    assert times == sorted(times)


def test_what_no_float32_holds_is_infinite(tmp_path: Path) -> None:
    with EventWriter(tmp_path) as writer:
        writer.scalars(1, {"high": 1e300, "low": -1e300, "nan": math.nan})
    values = scalars(read(writer.path)[1])
    assert (values["high"], values["low"]) == (math.inf, -math.inf)
    assert math.isnan(values["nan"])


def test_everything_is_on_disk_after_each_call(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path)
    for step in range(3):
        writer.scalars(step, {"a": float(step)})
        assert len(read(writer.path)) == step + 2
    writer.close()


def test_two_writers_of_a_folder_have_a_file_each(tmp_path: Path) -> None:
    with EventWriter(tmp_path) as one, EventWriter(tmp_path) as other:
        assert one.path != other.path
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 2
