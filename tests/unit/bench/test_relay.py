"""The limit of catching up gets and sends every byte, and says so when a range does not come."""

import os
from pathlib import Path

import pytest

from bench.limit import LimitError
from bench.relay import relay
from native.build import find_compiler
from tests.unit.bench.test_plain_reader import OBJECTS, Shelf, shelf

__all__ = ["shelf"]

pytestmark = pytest.mark.skipif(find_compiler(os.environ) is None, reason="no C compiler")


@pytest.mark.parametrize("in_flight", [1, 3])
def test_every_byte_is_sent_once(shelf: Shelf, tmp_path: Path, in_flight: int) -> None:
    result = relay(shelf.load(in_flight), tmp_path)
    assert result.bytes_per_s > 0
    assert sorted(shelf.asked) == sorted(
        (path, f"bytes={at}-{min(at + 100, len(body)) - 1}")
        for path, body in OBJECTS.items()
        for at in range(0, len(body), 100)
    )
    assert list(tmp_path.iterdir()) == []


def test_an_answer_of_another_status_ends_it(shelf: Shelf, tmp_path: Path) -> None:
    shelf.status = 403
    with pytest.raises(LimitError, match=r"(?s)relay.c ended with 1: HTTP/1.1 403"):
        relay(shelf.load(1), tmp_path)


def test_an_answer_that_ends_early_ends_it(shelf: Shelf, tmp_path: Path) -> None:
    shelf.missing = 1
    with pytest.raises(LimitError, match=r"relay.c ended with 1"):
        relay(shelf.load(1), tmp_path)
