"""OffsetCommit (API key 8), versions 2 to 10.

Behaviour:
- Offsets are written to `__consumer_offsets` and answered when they are committed there.
- A member commits under its generation; without one only an empty group takes offsets.
- Partitions that do not exist are answered UNKNOWN_TOPIC_OR_PARTITION (UNKNOWN_TOPIC_ID by id).
- It is the coordinators' most frequent request, so it has a hot handler (`broker.lifecycle.apis`).

Versions:
- 2   retention time, until 4
- 3   throttle time
- 6   leader epoch                                  KIP-320
- 7   group instance id                             KIP-345
- 8   flexible
- 9   GROUP_ID_NOT_FOUND instead of ILLEGAL_GENERATION, member epochs    KIP-848
- 10  topic ids instead of names                    KIP-848
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from broker.requests.reply import PARKED, HotResult, Reply
from broker.requests.request_limits import ELEMENTS_MAX, check_partitions, check_size
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.hot.offset_commit import (
    FIRST_TOPIC_ID_VERSION,
    OffsetCommitRequest,
    decode_request,
    encode_response,
)

if TYPE_CHECKING:
    from broker.network.connection import Connection
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.OFFSET_COMMIT
VERSIONS = (2, 10)

_OF_THE_REQUEST: Final = (int(ErrorCode.NONE), int(ErrorCode.OFFSET_METADATA_TOO_LARGE))
"""Codes of partitions that were part of the commit: an error of all of them takes their place."""

_KEY: Final = int(ApiKey.OFFSET_COMMIT)
_UNKNOWN_TOPIC_ID: Final = int(ErrorCode.UNKNOWN_TOPIC_ID)
_UNKNOWN_PARTITION: Final = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class OffsetCommitHandler:
    """Stores offsets of a group."""

    __slots__ = ("_open_reply", "_services")

    def __init__(
        self, services: "Services", open_reply: "Callable[[Connection, RequestContext], Reply]"
    ) -> None:
        """`open_reply` reserves the place of an answer that is given later."""
        self._services = services
        self._open_reply = open_reply

    def __call__(
        self,
        connection: "Connection",
        context: "RequestContext",
        frame: memoryview,
        position: int,
    ) -> HotResult:
        """Commit, and answer when that is committed.

        Raises:
            DecodeError: The bytes are malformed, or exceed `broker.requests.request_limits`.
        """
        size = len(frame) - position
        check_size(_KEY, size)
        version = context.api_version
        request = decode_request(bytes(frame[position:]), version)
        if size > ELEMENTS_MAX:
            check_partitions(
                len(request.topics) + sum([len(topic.partitions) for topic in request.topics])
            )
        if not self._find_topics(request, version):
            return encode_response(request.topics, version)
        commit = _Commit(request, version)
        self._services.groups.commit_offsets(request, version, commit.done)
        if commit.body is not None:
            return commit.body
        commit.reply = self._open_reply(connection, context)
        return PARKED

    def _find_topics(self, request: OffsetCommitRequest, version: int) -> bool:
        """Set names and ids of topics, of which one is given; errors where no such partition is.

        The id goes into the record: the offset is not one of a topic that is created later under
        the name.

        Returns:
            Whether some partition is left.
        """
        image = self._services.controller.image
        by_id = version >= FIRST_TOPIC_ID_VERSION
        is_any = False
        for topic in request.topics:
            partition_count = 0
            missing = _UNKNOWN_PARTITION
            if by_id:
                found = image.topics_by_id.get(topic.topic_id)
                if found is None:
                    missing = _UNKNOWN_TOPIC_ID
            else:
                found = image.topics.get(topic.name)
            if found is not None:
                topic.name = found.name
                topic.topic_id = found.topic_id
                partition_count = len(found.partitions)
            for partition in topic.partitions:
                if 0 <= partition.index < partition_count:
                    is_any = True
                else:
                    partition.error_code = missing
        return is_any


class _Commit:
    """A request whose answer may be given before there is a reply, or later.

    Attributes:
        body: The answer, if it was given first.
        reply: Where else it is sent.
    """

    __slots__ = ("_request", "_version", "body", "reply")

    def __init__(self, request: OffsetCommitRequest, version: int) -> None:
        self._request = request
        self._version = version
        self.body: bytes | None = None
        self.reply: Reply | None = None

    def done(self, code: ErrorCode) -> None:
        """Answer with an error of all partitions that have none of their own, or with NONE."""
        topics = self._request.topics
        if code is not ErrorCode.NONE:
            for topic in topics:
                for partition in topic.partitions:
                    if partition.error_code in _OF_THE_REQUEST:
                        partition.error_code = int(code)
        body = encode_response(topics, self._version)
        if self.reply is not None:
            self.reply.send_with_others(body)
        elif self.body is None:
            self.body = body
