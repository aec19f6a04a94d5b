"""Acknowledgements as requests carry them: checked, and in the terms of share-partitions.

Source: Kafka, KafkaApis.validateAcknowledgementBatches.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from broker.coordinator.persister import SharePartitionKey
from broker.share.delivery.settlement import RENEW, Acknowledgement
from protocol.error_codes import ErrorCode

MEMBER_ID_LENGTH_MAX = 36
"""A UUID in text, which members make up themselves."""

RENEW_FROM_VERSION = 2

BEFORE_ALL = -1
"""Where the lowest range may begin; what lies below the start offset is done, and so is this."""


class Said(Protocol):
    """What a request says of a range."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


def is_member_id(text: str | None) -> bool:
    """Whether it may name a member."""
    return text is not None and 0 < len(text) <= MEMBER_ID_LENGTH_MAX


class Acknowledgements:
    """Those of one request: what is to be passed on, and what is decided as it stands."""

    __slots__ = ("_is_renewal", "_types_max", "decided", "said")

    def __init__(self, version: int, *, is_renewal: bool) -> None:
        self._types_max = RENEW if version >= RENEW_FROM_VERSION else RENEW - 1
        self._is_renewal = is_renewal and version >= RENEW_FROM_VERSION
        self.said: dict[SharePartitionKey, list[Acknowledgement]] = {}
        self.decided: dict[SharePartitionKey, ErrorCode] = {}

    def add(self, key: SharePartitionKey, batches: Sequence[Said]) -> None:
        """What is said of one share-partition; of one that nothing is said of nothing is told."""
        if not self._are_valid(batches):
            self.decided[key] = ErrorCode.INVALID_REQUEST
        elif batches:
            self.said[key] = [
                Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
                for batch in batches
            ]

    def _are_valid(self, batches: Iterable[Said]) -> bool:
        previous_last = BEFORE_ALL
        for batch in batches:
            types = batch.acknowledge_types
            if (
                batch.first_offset > batch.last_offset
                or batch.first_offset < previous_last
                or not types
                or (len(types) > 1 and batch.last_offset - batch.first_offset + 1 != len(types))
                or min(types) < 0
                or max(types) > self._types_max
                or (RENEW in types and not self._is_renewal)
            ):
                return False
            previous_last = batch.last_offset
        return True
