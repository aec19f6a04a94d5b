"""Fields of heartbeats that are refused, whatever the kind of group."""

import pytest

from broker.groups.modern.validation import NAME_LENGTH_MAX, check_lengths, check_not_empty
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode


@pytest.mark.parametrize("value", ["", "  ", "\t"])
def test_blank_field_is_refused(value: str) -> None:
    with pytest.raises(ApiError, match="GroupId can't be empty") as raised:
        check_not_empty("GroupId", value)
    assert raised.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("value", [None, "x", " x "])
def test_field_that_says_something_or_is_absent_passes(value: str | None) -> None:
    check_not_empty("GroupId", value)


def test_name_may_be_as_long_as_a_key_has_room_for() -> None:
    check_lengths([("GroupId", "x" * NAME_LENGTH_MAX), ("RackId", None)])
    with pytest.raises(ApiError, match="RackId is too long") as raised:
        check_lengths([("GroupId", "x"), ("RackId", "x" * (NAME_LENGTH_MAX + 1))])
    assert raised.value.code is ErrorCode.INVALID_REQUEST
