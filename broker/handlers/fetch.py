"""Fetch (API key 1), versions 4 to 18.

Behaviour:
- Answers when `min_bytes` are readable over all partitions, or as much as the request may have;
  after `max_wait_ms`, or at once when any partition has an error.
- Records are sent as slices of segment files, from the batch that contains the offset; the last
  batch may be cut off, clients expect that. The first batch is sent whole even above the limits, so
  that a consumer always advances (KIP-74).
- read_committed sees nothing at or above the last stable offset, and gets the aborted transactions
  within the records (KIP-98).
- Offsets that only remote storage has are read from there, all partitions of the request in
  parallel; those not read within `remote.fetch.max.wait.ms` are answered empty (KIP-405, KIP-1018).
- Look-ups in a log (index entries, batch headers, aborted transactions) read the page cache; on a
  miss the fetch waits while threads read the disk. A slow disk delays the records of the request's
  other partitions for half a second at most.
- A fetch with a replica id is a follower's (`broker.replication.followers.follower_fetches`).
- From version 11 on a leader names a follower in the client's rack instead of records
  (`broker.replication.preferred_replica`), and a follower answers up to the high watermark that it
  has heard of. Behind that a fetch waits, as at the leader; behind its log end it is
  OFFSET_OUT_OF_RANGE, and the client asks the leader. While its log is truncated it answers
  NOT_LEADER_OR_FOLLOWER, as it always does to older versions (KIP-392).

Versions:
- 4   isolation level, aborted transactions       KIP-98
- 5   log start offset                            KIP-107
- 6   KAFKA_STORAGE_ERROR, before NOT_LEADER_OR_FOLLOWER    KIP-112
- 7   incremental sessions                        KIP-227
- 9   fencing by current leader epoch             KIP-320
- 10  zstd                                        KIP-110
- 11  rack of the client                          KIP-392
- 12  flexible; last fetched epoch                KIP-595
- 13  topic ids instead of names                  KIP-516
- 16  addresses of new leaders                    KIP-951
- 17, 18 directory id and high watermark of followers
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from broker.replicas.delayed_cold_fetch import (
    HELD_BACK_MAX_MS,
    WAIT_MAX_MS,
    DelayedColdFetch,
    Missing,
)
from broker.replicas.delayed_fetch import DelayedFetch
from broker.replicas.delayed_remote_fetch import DelayedRemoteFetch, is_settled
from broker.replicas.fetch_sessions import (
    FetchContext,
    FetchSessionCache,
    SessionPartition,
    TopicKey,
)
from broker.replicas.leader_hints import FETCH_CODES, FETCH_FROM_VERSION
from broker.requests.reply import PARKED, Body, HotResult, Reply
from broker.requests.request_limits import ELEMENTS_MAX, check_partitions, check_size
from broker.runtime.errors import ApiError, code_of
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.hot.fetch import FetchPartitionResponse, decode_request, encode_response
from storage.errors import DiskError, OffsetNotLocalError, StorageError
from storage.index.reads import NOWAIT, WouldBlockError
from tiered.errors import TieredError
from tiered.remote_read import PausedRead, RemoteRecords

if TYPE_CHECKING:
    from broker.network.connection import Connection
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager
    from broker.replication.followers.follower_fetches import FollowerFetches
    from broker.replication.preferred_replica import RackAwareReplicaSelector
    from broker.requests.request_context import RequestContext
    from protocol.hot.fetch import FetchPartition, FetchRequest
    from protocol.hot.wire import NodeEndpoint
    from storage.index.reads import CachedReads
    from tiered.remote_read import RemoteRead

API_KEY = ApiKey.FETCH
VERSIONS = (4, 18)

FOLLOWERS_FROM_VERSION: Final = 11
TOPIC_IDS_FROM_VERSION: Final = 13
STORAGE_ERROR_FROM_VERSION: Final = 6
"""Clients of before do not look for another leader when they get it."""

READ_COMMITTED: Final = 1


class ReadResult:
    """The result of one read of the logs: a response per partition, in order, and their bytes.

    Attributes:
        reserved: Bytes that unfinished remote reads may still bring.
        expects_batch: One of them was promised a whole batch, however large it is.
        reads: Of remote storage, by place in the request; kept from one read to the next.
        unsettled: Those to wait for, with their partitions.
        unused: Bytes that the limits of partitions had room for, of those that have more to read:
            only whole batches are sent, and the next one did not fit.
        found: Results of threads' reads for this request, by place in it.
        missing: Reads for threads, before the request can be answered in full.
        rack: Of the client, where leaders may name followers in it; else empty.
    """

    __slots__ = (
        "expects_batch",
        "failed",
        "found",
        "missing",
        "partitions",
        "rack",
        "read_from",
        "reads",
        "reserved",
        "size",
        "unsettled",
        "unused",
        "waiting_on",
    )

    def __init__(
        self,
        reads: "dict[int, RemoteRead] | None",
        found: "dict[int, CachedReads] | None" = None,
        rack: str = "",
    ) -> None:
        self.rack = rack
        self.reads = reads
        self.found = found
        self.missing: list[Missing] | None = None
        self.unsettled: list[tuple[Partition, RemoteRead]] | None = None
        self.reserved = 0
        self.expects_batch = False
        self.partitions: list[tuple[TopicKey, FetchPartitionResponse]] = []
        self.size = 0
        self.unused = 0
        self.failed = False
        self.waiting_on: list[Partition] = []
        self.read_from: list[tuple[Partition, int]] = []

    @property
    def readable(self) -> int:
        """Bytes that count for `min_bytes`: as if the last batch of each limit were sent in part.

        So Kafka counts. A client whose least is what a partition may have at most would wait for
        each answer else, however much there is to read.
        """
        return self.size + self.unused


class FetchHandler:
    """See the module."""

    __slots__ = ("_followers", "_max_bytes", "_open_reply", "_replicas", "_selector", "sessions")

    def __init__(
        self,
        replicas: "ReplicaManager",
        sessions: FetchSessionCache,
        followers: "FollowerFetches",
        open_reply: "Callable[[Connection, RequestContext], Reply]",
        *,
        max_bytes: int,
        selector: "RackAwareReplicaSelector | None" = None,
    ) -> None:
        """`selector`: names followers to consumers; without one all read from leaders."""
        self._replicas = replicas
        self._selector = selector
        self._followers = followers
        self.sessions = sessions
        self._open_reply = open_reply
        self._max_bytes = max_bytes

    def __call__(
        self, connection: "Connection", context: "RequestContext", frame: memoryview, position: int
    ) -> HotResult:
        """Handle one request in place."""
        version = context.api_version
        check_size(API_KEY, len(frame))
        request = decode_request(frame, position, version)
        by_id = version >= TOPIC_IDS_FROM_VERSION
        if len(frame) > ELEMENTS_MAX:
            check_partitions(
                sum(len(topic.partitions) + 1 for topic in request.topics)
                + sum(len(indexes) + 1 for _, indexes in request.forgotten)
            )
        if request.replica_id >= 0:
            return self._followers.handle(connection, context, request)
        # More than it may get would be waited for in vain.
        request.min_bytes = min(request.min_bytes, request.max_bytes, self._max_bytes)
        fetch = self.sessions.begin(request, uses_topic_ids=by_id)
        check_partitions(len(fetch.wanted))
        if fetch.error:
            return encode_response([], version, error_code=fetch.error, session_id=0)
        result = self._read(request, fetch, context, None)
        if result.missing is None and result.unsettled is None:
            if (
                result.readable >= request.min_bytes
                or result.failed
                or request.max_wait_ms <= 0
                or not fetch.wanted
            ):
                return self._answer(fetch, result, context)
            self._park(self._open_reply(connection, context), context, request, fetch, result)
            return PARKED
        reply = self._open_reply(connection, context)
        if result.missing is not None:
            self._park_cold(reply, context, request, fetch, result)
        else:
            self._park_remote(reply, context, request, fetch, result)
        return PARKED

    def _park(
        self,
        reply: Reply,
        context: "RequestContext",
        request: "FetchRequest",
        fetch: FetchContext,
        first: ReadResult,
        max_wait_ms: float | None = None,
    ) -> None:
        replicas = self._replicas
        wait_ms = request.max_wait_ms if max_wait_ms is None else max_wait_ms
        until_ms = replicas.monotonic_ms() + wait_ms

        def read_and_answer(force: bool) -> bool:
            result = self._read(request, fetch, context, first.reads)
            first.reads = result.reads
            if result.missing is not None:
                # Its wait does not start over: after this read it is over.
                left_ms = 0 if force else max(until_ms - replicas.monotonic_ms(), 0)
                self._park_cold(reply, context, request, fetch, result, left_ms)
                return True
            if not force and result.readable < request.min_bytes and not result.failed:
                return False
            reply.send(self._answer(fetch, result, context))
            return True

        # Also partitions with records: more of them may be missing.
        watched = [*first.waiting_on, *(partition for partition, _ in first.read_from)]
        operation = DelayedFetch(
            watched,
            max(request.min_bytes - first.readable, 1),
            read_and_answer,
            committed_only=request.isolation_level == READ_COMMITTED,
        )
        reply.when_abandoned(operation.abandon)
        if replicas.delayed_fetch.park_poll(operation, wait_ms, reply.slot.connection):
            for partition in watched:
                partition.watch_fetch().add(operation)

    def _park_cold(
        self,
        reply: Reply,
        context: "RequestContext",
        request: "FetchRequest",
        fetch: FetchContext,
        first: ReadResult,
        max_wait_ms: float | None = None,
    ) -> None:
        """Park the fetch until threads have read the disk, or complete it at once if they are fast.

        `max_wait_ms`: the rest of the request's own; 0: it is answered with the records read then.
        """
        replicas = self._replicas
        assert first.missing is not None
        last = first
        wait_ms = request.max_wait_ms if max_wait_ms is None else max_wait_ms
        until_ms = replicas.monotonic_ms() + wait_ms

        def read_again(operation: DelayedColdFetch) -> tuple[list[Missing], bool]:
            nonlocal last
            last = self._read(request, fetch, context, last.reads, operation.found)
            return last.missing or [], last.size > 0 or last.failed

        def go_on(expired: bool) -> None:
            result = last
            if expired:
                # A partition may be gone; one whose records are not read is answered empty.
                result = self._read(request, fetch, context, last.reads, operation.found)
                for _, read in result.unsettled or ():
                    if not read.finished:
                        read.release()
            elif result.unsettled is not None:
                self._park_remote(reply, context, request, fetch, result)
                return
            elif result.readable < request.min_bytes and not result.failed:
                left_ms = until_ms - replicas.monotonic_ms()
                if left_ms > 0:
                    self._park(reply, context, request, fetch, result, left_ms)
                    return
            reply.send(self._answer(fetch, result, context))

        operation = DelayedColdFetch(
            first.missing, replicas.cold_reads, self._is_here, read_again, go_on
        )
        reply.when_abandoned(operation.abandon)
        purgatory = replicas.delayed_cold_fetch
        if purgatory.park_poll(operation, WAIT_MAX_MS, reply.slot.connection):
            for partition in operation.partitions:
                partition.watch_fetch().add(operation)
        # Also if it is held back, like remote ones.
        operation.begin(replicas.timer, max(HELD_BACK_MAX_MS, request.max_wait_ms))

    def _park_remote(
        self,
        reply: Reply,
        context: "RequestContext",
        request: "FetchRequest",
        fetch: FetchContext,
        first: ReadResult,
    ) -> None:
        assert first.unsettled is not None
        partitions = [partition for partition, _ in first.unsettled]

        def answer() -> None:
            # A local segment may have become remote meanwhile: its read has no time left, the
            # next request will find it under way.
            result = self._read(request, fetch, context, first.reads)
            for _, read in result.unsettled or ():
                if not read.finished:
                    read.release()
            reply.send(self._answer(fetch, result, context))

        operation = DelayedRemoteFetch(
            [read for _, read in first.unsettled], partitions, self._is_here, answer
        )
        reply.when_abandoned(operation.abandon)
        replicas = self._replicas
        purgatory = replicas.delayed_remote_fetch
        if purgatory.park_poll(operation, replicas.remote.fetch_max_wait_ms, reply.slot.connection):
            for partition in partitions:
                partition.watch_fetch().add(operation)
        # Also if it is held back: it ends with its reads, which are bounded by themselves.
        operation.begin()

    @staticmethod
    def _is_here(partition: "Partition") -> bool:
        return partition.is_leader or partition.following is not None

    def _read(
        self,
        request: "FetchRequest",
        fetch: FetchContext,
        context: "RequestContext",
        reads: "dict[int, RemoteRead] | None",
        found: "dict[int, CachedReads] | None" = None,
    ) -> ReadResult:
        result = ReadResult(reads, found, "" if self._selector is None else request.rack_id)
        left = min(request.max_bytes, self._max_bytes)
        committed_only = request.isolation_level == READ_COMMITTED
        for topic, wanted in fetch.wanted:
            response = self._read_partition(topic, wanted, left, committed_only, result, context)
            records = response.records
            if records is not None:
                size = records.length
                result.size += size
                left -= size
            elif result.reserved:
                left -= result.reserved
                result.reserved = 0
            if response.error_code:
                result.failed = True
                if (
                    context.api_version < STORAGE_ERROR_FROM_VERSION
                    and response.error_code == ErrorCode.KAFKA_STORAGE_ERROR
                ):
                    response.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            result.partitions.append((topic, response))
        return result

    def _read_partition(
        self,
        topic: TopicKey,
        wanted: "FetchPartition | SessionPartition",
        left: int,
        committed_only: bool,
        result: ReadResult,
        context: "RequestContext",
    ) -> FetchPartitionResponse:
        replicas = self._replicas
        if isinstance(topic, bytes):
            name = replicas.names_by_id.get(topic)
            if name is None:
                name = replicas.known_name(topic)
                if name is None:
                    return failure(wanted.partition, ErrorCode.UNKNOWN_TOPIC_ID)
        else:
            name = topic
        partition = replicas.leader_of(name, wanted.partition)
        if partition is None:
            if context.api_version >= FOLLOWERS_FROM_VERSION:
                partition = replicas.follower_of(name, wanted.partition)
            if partition is None:
                return failure(wanted.partition, replicas.missing_error(name, wanted.partition))
        log = partition.log
        try:
            if wanted.current_leader_epoch >= 0:
                partition.check_leader_epoch(wanted.current_leader_epoch)
            partition.stats.fetches += 1
            if result.rack:
                preferred = self._preferred(partition, wanted, result, context)
                if preferred is not None:
                    return preferred
            if wanted.last_fetched_epoch >= 0:
                epoch, end = log.reader.end_offset_for_epoch(wanted.last_fetched_epoch)
                is_known = epoch >= 0 and end >= 0
                diverges = epoch < wanted.last_fetched_epoch or end < wanted.fetch_offset
                if (diverges or not is_known) and not partition.leads_for_certain:
                    # The leader may have what is not here.
                    raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                if not is_known:
                    raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
                if diverges:
                    response = failure(wanted.partition, ErrorCode.NONE)
                    response.diverging_epoch = (epoch, end)
                    response.high_watermark = log.high_watermark
                    response.last_stable_offset = log.last_stable_offset
                    response.log_start_offset = log.log_start_offset
                    result.failed = True
                    return response
            found = result.found
            reads = NOWAIT if found is None else found.get(len(result.partitions), NOWAIT)
            stable = log.last_stable_offset
            end_offset = stable if committed_only else log.high_watermark
            offset = wanted.fetch_offset
            records = log.reader.read(
                offset,
                max_bytes=max(min(wanted.max_bytes, left), 0),
                end_offset=end_offset,
                min_one_batch=result.size == 0,
                reads=reads,
            )
            if records is not None and reads is not NOWAIT:
                records.is_doubted = True
            if records is not None and records.is_cut:
                result.unused += max(min(wanted.max_bytes, left) - records.length, 0)
            if records is not None and records.length == 0:
                # There is a batch, but it does not fit any more: next time, then.
                records = None
            aborted = None
            if committed_only:
                aborted = (
                    []
                    if records is None
                    else log.reader.aborted_transactions(offset, records, reads)
                )
        except OffsetNotLocalError:
            max_bytes = max(min(wanted.max_bytes, left), 0)
            return self._read_remote(partition, wanted, max_bytes, committed_only, result, context)
        except WouldBlockError as need:
            if result.missing is None:
                result.missing = []
            place = len(result.partitions)
            result.missing.append(Missing(place, partition, need.key, need.work))
            records = None
            aborted = [] if committed_only else None
        except (StorageError, ApiError) as error:
            if isinstance(error, DiskError):
                replicas.disk_failed(partition, error)
                if error.is_descriptor_limit and result.size:
                    # As if it did not fit: the records read so far are sent first.
                    return FetchPartitionResponse(
                        wanted.partition,
                        0,
                        log.high_watermark,
                        log.last_stable_offset,
                        log.log_start_offset,
                        aborted=[] if committed_only else None,
                    )
            partition.stats.failed_fetches += 1
            code = code_of(error)
            if (
                code == ErrorCode.OFFSET_OUT_OF_RANGE
                and wanted.fetch_offset > log.log_end_offset
                and not partition.leads_for_certain
            ):
                # A consumer that names no leader epoch would begin anew, where it is told to.
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            return failure(wanted.partition, code)
        if records is None:
            result.waiting_on.append(partition)
        else:
            result.read_from.append((partition, records.length))
        return FetchPartitionResponse(
            wanted.partition,
            0,
            log.high_watermark,
            stable,
            log.log_start_offset,
            aborted=aborted,
            records=records,
        )

    def _preferred(
        self,
        partition: "Partition",
        wanted: "FetchPartition | SessionPartition",
        result: ReadResult,
        context: "RequestContext",
    ) -> FetchPartitionResponse | None:
        """The response that names a follower instead of records; None: it is read here."""
        assert self._selector is not None
        node_id = self._selector.select(
            partition, wanted.fetch_offset, result.rack, context.connection.listener_name
        )
        if node_id < 0:
            return None
        # At once, as with an error: the client is to ask there.
        result.failed = True
        log = partition.log
        return FetchPartitionResponse(
            wanted.partition,
            0,
            log.high_watermark,
            log.last_stable_offset,
            log.log_start_offset,
            preferred_read_replica=node_id,
        )

    def _read_remote(
        self,
        partition: "Partition",
        wanted: "FetchPartition | SessionPartition",
        max_bytes: int,
        committed_only: bool,
        result: ReadResult,
        context: "RequestContext",
    ) -> FetchPartitionResponse:
        """The response for an offset that is not local, with the records read so far.

        The place in the request identifies the read: both reads visit the same partitions.
        """
        if result.reads is None:
            result.reads = {}
        place = len(result.partitions)
        read = result.reads.get(place)
        log = partition.log
        try:
            if read is None:
                read = result.reads[place] = self._replicas.remote.read(
                    partition,
                    wanted.fetch_offset,
                    max_bytes=max_bytes,
                    min_one_batch=result.size == 0 and not result.expects_batch,
                    with_aborted=committed_only,
                    client=(context.connection.principal, context.client_id or ""),
                )
            if not is_settled(read):
                if result.unsettled is None:
                    result.unsettled = []
                result.unsettled.append((partition, read))
                if not isinstance(read, PausedRead):
                    result.reserved = max_bytes
                    result.expects_batch = True
            if read.error is not None:
                raise read.error
        except (TieredError, ApiError, StorageError) as error:
            partition.stats.failed_fetches += 1
            return failure(wanted.partition, code_of(error))
        records = read.records
        if records is not None and records.length == 0:
            if records.awaits_append:
                # The offset lies in a gap, and behind it nothing is readable yet.
                result.waiting_on.append(partition)
                del result.reads[place]
            records = None
        if records is not None:
            result.read_from.append((partition, records.length))
        return FetchPartitionResponse(
            wanted.partition,
            0,
            log.high_watermark,
            log.last_stable_offset,
            log.log_start_offset,
            aborted=(records.aborted if records else []) if committed_only else None,
            records=records,
        )

    def _answer(self, fetch: FetchContext, result: ReadResult, context: "RequestContext") -> Body:
        for partition, size in result.read_from:
            partition.stats.bytes_out += size
        session = fetch.session
        chosen = result.partitions
        if session is not None:
            chosen = []
            for (topic, response), (_, wanted) in zip(result.partitions, fetch.wanted, strict=True):
                assert isinstance(wanted, SessionPartition)
                has_records = response.records is not None
                if (
                    not fetch.incremental
                    or has_records
                    or response.error_code
                    or response.diverging_epoch is not None
                    or response.preferred_read_replica >= 0
                    or response.high_watermark != wanted.high_watermark
                    or response.log_start_offset != wanted.last_log_start_offset
                ):
                    chosen.append((topic, response))
                    wanted.high_watermark = response.high_watermark
                    wanted.last_log_start_offset = response.log_start_offset
                    if has_records:
                        session.answered(wanted)
            for place, read in (result.reads or {}).items():
                if not read.finished or read.error is not None:
                    # It had room kept for it and has not used it: the others come first now, or
                    # one whose segment cannot be read would starve them.
                    wanted = fetch.wanted[place][1]
                    assert isinstance(wanted, SessionPartition)
                    session.answered(wanted)
        topics: list[tuple[TopicKey, list[FetchPartitionResponse]]] = []
        for topic, response in chosen:
            if topics and topics[-1][0] == topic:
                topics[-1][1].append(response)
            else:
                topics.append((topic, [response]))
        version = context.api_version
        endpoints: Sequence[NodeEndpoint] = ()
        hints = self._replicas.leader_hints
        if result.failed and hints is not None and version >= FETCH_FROM_VERSION:
            endpoints = hints.add(topics, FETCH_CODES, context.connection.listener_name)
        body = encode_response(
            topics, version, session_id=fetch.session_id, node_endpoints=endpoints
        )
        return body if result.reads is None else _flat(body)


def _flat(body: Body) -> Body:
    """Split remote records into their slices: a piece is bytes or one slice."""
    if isinstance(body, bytes):
        return body
    pieces: list[Any] = []
    for piece in body:
        if isinstance(piece, RemoteRecords):
            pieces += piece.slices
        else:
            pieces.append(piece)
    return pieces


def failure(index: int, code: ErrorCode) -> FetchPartitionResponse:
    """A partition's answer without records; offsets are -1, as Kafka sends them with errors."""
    return FetchPartitionResponse(index, code, -1, -1, -1, aborted=[], records=None)
