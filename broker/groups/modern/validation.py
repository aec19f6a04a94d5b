"""Checks of a heartbeat's fields that consumer groups and share groups share.

Source: Kafka, GroupCoordinatorService.java (throwIf...).
"""

from collections.abc import Iterable

from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.internal.consumer_offsets import STRING_SIZE_MAX

NAME_LENGTH_MAX = STRING_SIZE_MAX // 4
"""Characters of a name that is part of a record's key, of at most four bytes each."""

SUBSCRIPTION_SIZE_MAX = 256 * 1024
"""Bytes of all topics that one member names: they have to fit into one record."""


def invalid_request(message: str) -> ApiError:
    """INVALID_REQUEST, with Kafka's words."""
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def check_not_empty(name: str, value: str | None) -> None:
    """Refuse a field that is there and blank.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    if value is not None and not value.strip():
        raise invalid_request(f"{name} can't be empty.")


def check_lengths(fields: Iterable[tuple[str, str | None]]) -> None:
    """Refuse names that no record has room for.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    for name, value in fields:
        if value is not None and len(value) > NAME_LENGTH_MAX:
            raise invalid_request(f"{name} is too long.")
