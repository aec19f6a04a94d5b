"""A record becomes one line."""

import json

import pytest

from cli.records.record_formats import FORMATS
from tests.fakes.kafka.library_clients import FakeRecord


@pytest.mark.parametrize(
    ("key", "value", "form", "line"),
    [
        (b"k", b"v", "value", b"v"),
        (b"k", None, "value", b"null"),
        (b"k", b"v", "key-value", b"k\tv"),
        (None, b"", "key-value", b"null\t"),
        (b"", b"\xff", "key-value", b"\t\xff"),
    ],
)
def test_plain_lines_are_the_bytes(
    key: bytes | None, value: bytes | None, form: str, line: bytes
) -> None:
    """Untouched; a null is spelt."""
    assert FORMATS[form](FakeRecord("t", 0, 0, key=key, value=value)) == line


def test_json_has_everything() -> None:
    """Headers in order, twice the same key too; bytes that are no text as base64."""
    record = FakeRecord("t", 1, 2, 3, b"\xff", "ä".encode(), (("h", b"1"), ("h", b"2")))
    line = FORMATS["json"](record)
    assert json.loads(line) == {
        "topic": "t",
        "partition": 1,
        "offset": 2,
        "timestamp": 3,
        "key": {"base64": "/w=="},
        "value": "ä",
        "headers": [{"key": "h", "value": "1"}, {"key": "h", "value": "2"}],
    }
    assert b"\n" not in line


def test_json_tells_null_from_empty() -> None:
    """A tombstone is not an empty value."""
    shown = json.loads(FORMATS["json"](FakeRecord("t", 0, 0, key=b"", value=None)))
    assert (shown["key"], shown["value"]) == ("", None)
