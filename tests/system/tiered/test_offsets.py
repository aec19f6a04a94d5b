"""The checker of the invariants must itself be able to fail, once per invariant."""

from dataclasses import replace
from typing import Any

import pytest

from tests.system.tiered.offsets import TieredOffsets, violations

GOOD = TieredOffsets(
    log_start=3,
    local_start=10,
    remote_end=12,
    last_stable=15,
    log_end=16,
    log_start_later=3,
    remote_segments=((0, 5), (5, 12)),
    first_local_segment=9,
)


def test_what_is_right_passes() -> None:
    assert violations(GOOD) == []
    # Nothing tiered yet.
    fresh = TieredOffsets(0, 0, 0, 4, 4, 0, (), 0)
    assert violations(fresh) == []
    # All of the remote part has expired: no segment is asked for.
    assert violations(replace(GOOD, log_start=10, log_start_later=10, remote_segments=())) == []
    # It expired while it was looked at.
    assert violations(replace(GOOD, log_start_later=10, remote_segments=())) == []
    # Two copies of one range, of two leaders.
    assert violations(replace(GOOD, remote_segments=((0, 5), (0, 7), (5, 12)))) == []


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"log_end": 14}, "1:"),
        ({"last_stable": 9, "remote_end": 9, "log_end": 20}, "2:"),
        ({"remote_end": 16}, "3:"),
        ({"remote_segments": ((13, 14),)}, "4:"),
        ({"remote_end": 9}, "5: Lx"),
        ({"remote_segments": ((0, 5), (6, 12))}, "5: offset 5 "),
        ({"remote_segments": ((4, 12),)}, "5: offset 3 "),
        ({"remote_segments": ((0, 5),)}, "5: offset 5 "),
        ({"remote_segments": ()}, "5: offset 3 "),
        ({"first_local_segment": 11}, "directory"),
    ],
)
def test_each_violation_is_told(changed: dict[str, Any], told: str) -> None:
    found = violations(replace(GOOD, **changed))
    assert any(line.startswith(told) for line in found), found
