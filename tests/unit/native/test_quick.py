"""`native/quick.c` under sanitizers: hostile bytes, and the same answers as the general code."""

import sysconfig
from collections.abc import Iterator
from typing import Final

import pytest

from tests.effort import drawn
from tests.unit.native.sanitizers import run_sanitized, sanitized_source

SCRIPT: Final = "from tests.unit.native.quick_agreement import main; main()"

MAY_LEAVE: Final = {
    "encode_fetched",
    "encode_produced",
    "plain_batch",
    "read_fetch",
    "read_fetched",
    "read_plain_produce",
    "read_produce",
    "split_frames",
}
"""Functions that leave what is unusual to the general code."""


@pytest.fixture(scope="module")
def sanitized() -> Iterator[tuple[str, str]]:
    """The source with sanitizers, and what has to be loaded before Python."""
    with sanitized_source("quick", f"-I{sysconfig.get_path('include')}") as found:
        yield found


@pytest.mark.parametrize("seed", [1, 2])
def test_what_it_answers_is_what_the_general_code_answers(
    sanitized: tuple[str, str], seed: int
) -> None:
    """Bytes damaged in every way: None, or the same values; and no other memory is touched."""
    attempts = drawn(1500, 5)
    done = run_sanitized(SCRIPT, sanitized, seed, attempts)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [line.split() for line in done.stdout.splitlines()]
    assert {name for name, _, _ in rows} == MAY_LEAVE
    # Each of both is tried often enough to mean something.
    assert min(min(int(answered), int(left)) for _, answered, left in rows) > attempts // 10
