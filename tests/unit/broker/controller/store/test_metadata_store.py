"""The limits, to the byte."""

import pytest

from broker.controller.store.metadata_store import (
    OPERATION_OVERHEAD,
    REQUEST_SIZE_MAX,
    Delete,
    Put,
    RequestTooLargeError,
    check_limits,
    value_equals,
)


def test_size_counts_keys_values_and_operands() -> None:
    """Exactly the limit passes, a byte more does not, wherever it is."""
    room = REQUEST_SIZE_MAX - 3 * OPERATION_OVERHEAD - len("aébc")
    # Keys count in bytes of UTF-8: "é" has two.
    compare = [value_equals("a", bytes(10))]
    then = [Put("é", bytes(room - 11))]
    otherwise = [Delete("bc")]
    check_limits(compare, then, otherwise)
    with pytest.raises(RequestTooLargeError):
        check_limits(compare, [Put("é", bytes(room - 10))], otherwise)
    with pytest.raises(RequestTooLargeError):
        check_limits([value_equals("a", bytes(11))], then, otherwise)
    with pytest.raises(RequestTooLargeError):
        check_limits(compare, then, [Delete("bcd")])
