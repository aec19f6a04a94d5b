"""Modules written from small tables made up here, run, and looked at."""

from types import ModuleType
from typing import Any

import pytest

from protocol.codegen.module import ModuleWriter
from protocol.codegen.schema import Api, Field, Struct
from protocol.errors import DecodeError


def field(name: str, wire_type: str, **changes: Any) -> Field:
    values: dict[str, Any] = {"struct": None, "array": False, "nullable": False, "tag": None}
    values |= {"default": {"string": "", "bytes": b""}.get(wire_type, 0)} | changes
    return Field(name=name, type=wire_type, **values)


def api(requests: dict[int, Struct]) -> Api:
    responses = {v: Struct("PingResponse", (), struct.flexible) for v, struct in requests.items()}
    return Api(99, "ping", requests, responses)


def run(text: str) -> Any:
    module = ModuleType("ping")
    exec(compile(text, "ping.py", "exec"), module.__dict__)
    return module


def test_run_of_constant_size_is_one_unpack() -> None:
    """Three integers and the length after them are read by one call."""
    fields = (
        field("a", "int8"),
        field("b", "int64"),
        field("c", "bool"),
        field("name", "string"),
        field("d", "int32"),
    )
    text = ModuleWriter(api({0: Struct("PingRequest", fields, False)})).write()
    assert "m.a, m.b, m.c, n = _u_bqzh(data, p)" in text
    ping = run(text)
    message = ping.PingRequest(a=-1, b=1 << 40, c=True, name="ä", d=7)
    data = ping.encode_request(message, 0)
    assert data.hex() == "ff" + "0000010000000000" + "01" + "0002c3a4" + "00000007"
    assert ping.decode_request(data, 0) == message


def test_versions_with_one_layout_share_a_function() -> None:
    """The first one's; a version that differs has its own."""
    small = Struct("PingRequest", (field("a", "int32"),), False)
    large = Struct("PingRequest", (field("a", "int32"), field("b", "int32", default=5)), True)
    text = ModuleWriter(api({0: small, 1: small, 2: large})).write()
    assert text.count("def _decode_request_v") == 2
    ping = run(text)
    assert ping.FIRST_FLEXIBLE_VERSION == 2
    data = ping.encode_request(ping.PingRequest(a=3, b=9), 1)
    assert ping.decode_request(data, 1) == ping.PingRequest(a=3, b=5)


def test_nested_lists_and_tags() -> None:
    """A list of structures with a tagged list of strings, and a structure that may be null."""
    inner = Struct(
        "Inner",
        (
            field("id", "int16"),
            field("notes", "string", array=True, tag=3, default=()),
            field("one", "bytes", nullable=True, tag=1, default=None),
        ),
        True,
    )
    outer = Struct(
        "PingRequest",
        (
            field("list", "struct", struct=inner, array=True, default=()),
            field("maybe", "struct", struct=inner, nullable=True, default=None),
        ),
        True,
    )
    ping = run(ModuleWriter(api({0: outer})).write())
    message = ping.PingRequest(list=[ping.Inner(id=1, notes=["x", ""], one=b"\x00")])
    data = ping.encode_request(message, 0)
    assert data.hex() == "02" + "0001" + "02" + "01020200" + "0304030278" + "01" + "ff" + "00"
    assert ping.decode_request(data, 0) == message
    message.maybe = ping.Inner(id=-2)
    assert ping.decode_request(ping.encode_request(message, 0), 0) == message
    for size in range(len(data)):
        with pytest.raises(DecodeError):
            ping.decode_request(data[:size], 0)


def test_count_is_compared_with_the_smallest_element() -> None:
    """Twelve bytes each here: two elements cannot be in twenty bytes."""
    inner = Struct("Inner", (field("a", "int64"), field("b", "int32")), False)
    outer = Struct(
        "PingRequest", (field("list", "struct", struct=inner, array=True, default=()),), False
    )
    text = ModuleWriter(api({0: outer})).write()
    assert "if n * 12 > end - p:" in text
    with pytest.raises(DecodeError, match="claims 2 elements"):
        run(text).decode_request(b"\x00\x00\x00\x02" + bytes(20), 0)


def test_elements_of_no_size_cannot_be_written() -> None:
    """Their number could not be checked against anything."""
    outer = Struct(
        "PingRequest",
        (field("list", "struct", struct=Struct("Empty", (), False), array=True, default=()),),
        False,
    )
    with pytest.raises(NotImplementedError, match="may be empty"):
        ModuleWriter(api({0: outer})).write()


def test_a_field_that_changes_its_type_is_noticed() -> None:
    """One attribute cannot be both."""
    versions = {
        0: Struct("PingRequest", (field("a", "int32"),), False),
        1: Struct("PingRequest", (field("a", "string"),), False),
    }
    with pytest.raises(NotImplementedError, match="a changes its type"):
        ModuleWriter(api(versions)).write()
