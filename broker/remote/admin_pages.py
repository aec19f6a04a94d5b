"""Admin API of remote storage, for `varve tier`; all answers are JSON.

    GET  /tier                        the bucket, switches, caches, garbage and faults, and one row
                                      for each partition led here
    GET  /tier?topic=T[&partition=P]  only these, and their segments on both sides
    POST /tier/claim                  take the bucket's claim: no other broker of this cluster lives
    POST /tier/gc[?dry-run=true]      collect garbage now
    POST /tier/rebuild-metadata[?dry-run=true][&below-log-start=true][&accept-loss=true]
                                      publish again what the bucket's manifests know
    POST /tier/skip?topic=T&partition=P[&start=OFFSET]
                                      skip the corrupt local segment that copying stops before, if
                                      it begins there; without `start` only return which it is
    POST /tier/verify?topic=T[&partition=P]
                                      read their remote segments again and compare; see whether
                                      all is there that their histories name

A segment's `end` is exclusive here, like every other end, and not as in KIP-405. While the remote
log's metadata is still being read a row says `"ready": false` and has no segments.
"""

import dataclasses
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from broker.network.admin_http import Page, Pages, Query
from storage.errors import StorageError
from storage.types.uuid_text import format_uuid
from tiered.errors import TieredError
from tiered.fetch.gaps import find_gaps
from tiered.format.object_keys import ObjectKeys
from tiered.maintenance.unanswered import Unanswered
from tiered.metadata.history_reader import verify_history
from tiered.segment_metadata import (
    RemoteLogSegmentMetadata,
    SegmentState,
    TopicIdPartition,
)

if TYPE_CHECKING:
    from config.tier import TierConfig
    from storage.log.log import Log
    from tiered.maintenance.verifier import SegmentFaults
    from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
    from tiered.restore.metadata_rebuild import MetadataRebuild
    from tiered.tasks.remote_log_manager import RemoteLogManager
    from tiered.tier import Tier

LOGGER = logging.getLogger(__name__)

JSON_TYPE = "application/json; charset=utf-8"


class RemoteParts(Protocol):
    """Parts of remote storage: `broker.remote.remote_storage.RemoteStorage` has them.

    All but the settings are None until the first topic needs remote storage.
    """

    @property
    def settings(self) -> "TierConfig":
        """The present ones."""
        ...

    @property
    def location(self) -> str:
        """Of the bucket."""
        ...

    @property
    def manager(self) -> "RemoteLogManager | None":
        """Tasks."""
        ...

    @property
    def metadata(self) -> "RemoteLogMetadataManager | None":
        """Segments."""
        ...

    @property
    def rebuild(self) -> "MetadataRebuild | None":
        """Metadata out of the bucket."""
        ...

    @property
    def tier(self) -> "Tier | None":
        """Counters."""
        ...


class Logs(Protocol):
    """The local logs."""

    def log_of(self, topic: str, partition: int) -> "Log | None":
        """A partition's log, None: it is not served here."""
        ...


class TierPages:
    """See the module."""

    def __init__(self, remote: RemoteParts, logs: Logs, *, cluster_id: str, node_id: int) -> None:
        self._remote = remote
        self._logs = logs
        self._cluster_id = cluster_id
        self._node_id = node_id

    @property
    def pages(self) -> Pages:
        """For GET."""
        return {"/tier": self.show}

    @property
    def actions(self) -> Pages:
        """For POST."""
        return {
            "/tier/claim": self.take_claim,
            "/tier/gc": self.collect_garbage,
            "/tier/rebuild-metadata": self.rebuild_metadata,
            "/tier/skip": self.skip,
            "/tier/verify": self.verify,
        }

    # -- pages -----------------------------------------------------------------------------------

    async def show(self, query: Query) -> Page:
        """See the module."""
        try:
            wanted = self._wanted(query)
        except ValueError as error:
            return _refusal(400, str(error))
        settings, manager = self._remote.settings, self._remote.manager
        document: dict[str, object] = {
            "clusterId": self._cluster_id,
            "nodeId": self._node_id,
            "location": self._remote.location,
            "open": manager is not None,
            "copyPaused": settings.tier_copy_paused,
            "fetchPaused": settings.tier_fetch_paused,
            "partitions": [self._row(one, detailed="topic" in query) for one in wanted],
        }
        if manager is not None:
            report = manager.scrubber.last
            document |= {
                "bucketOwner": manager.claim.owner,
                "claimMissing": manager.claim.is_missing,
                "metadataLost": list(self._remote.metadata.losses())
                if self._remote.metadata
                else [],
                "histories": {
                    "kept": manager.history.kept,
                    "behind": manager.history.behind,
                    "oldestBehindMs": manager.history.oldest_behind_ms,
                    "failures": manager.history.failures,
                },
                "copiesInFlight": manager.copies_in_flight,
                "stalledCopies": manager.stalled_copies,
                "garbage": None if report is None else _report(report),
                "verified": {
                    "segments": manager.verifier.verified_segments,
                    "bytes": manager.verifier.verified_bytes,
                    "rounds": manager.verifier.rounds,
                },
                "faults": [_faults(one) for one in manager.verifier.faults],
                "tier": None if self._remote.tier is None else self._remote.tier.statistics(),
            }
        return _page(document)

    async def take_claim(self, _: Query) -> Page:
        """See the module."""
        manager = self._remote.manager
        if manager is None:
            return _refusal(503, "no topic of this broker has needed remote storage yet")
        try:
            await manager.claim.take()
            manager.history.overrule()
        except TieredError as error:
            return _refusal(503, str(error))
        return _page({"bucketOwner": manager.claim.owner, "state": manager.claim.state.value})

    async def collect_garbage(self, query: Query) -> Page:
        """See the module."""
        manager = self._remote.manager
        if manager is None:
            return _refusal(503, "no topic of this broker has needed remote storage yet")
        try:
            report = await manager.collect_garbage(dry_run=query.get("dry-run") == "true")
        except TieredError as error:
            return _refusal(503, str(error))
        return _page(_report(report))

    async def rebuild_metadata(self, query: Query) -> Page:
        """See the module."""
        rebuild = self._remote.rebuild
        if rebuild is None:
            return _refusal(503, "no topic of this broker has needed remote storage yet")
        try:
            report = await rebuild.run(
                dry_run=query.get("dry-run") == "true",
                below_log_start=query.get("below-log-start") == "true",
                accept_loss=query.get("accept-loss") == "true",
            )
        except TieredError as error:
            return _refusal(503, str(error))
        return _page({_camel(name): value for name, value in dataclasses.asdict(report).items()})

    async def verify(self, query: Query) -> Page:
        """See the module."""
        manager = self._remote.manager
        if "topic" not in query:
            return _refusal(400, "topic is missing")
        try:
            wanted = self._wanted(query)
        except ValueError as error:
            return _refusal(400, str(error))
        segments = [segment for one in wanted for segment in self._finished(one)]
        faulty: list[object] = []
        unread: list[str] = []
        unanswered = Unanswered()
        read = size = 0
        for position, segment in enumerate(segments, 1):
            assert manager is not None
            try:
                faults = await manager.verifier.verify(segment)
            except TieredError as error:
                unread.append(f"{segment.partition} {segment.id}: {error}")
                unanswered.failed(error)
                if unanswered.is_over:
                    unread += unanswered.left(len(segments) - position)
                    break
                continue
            unanswered.answered()
            read += 1
            size += segment.segment_size_bytes
            if faults:
                faulty.append(
                    {**_segment(segment), "faults": [fault._asdict() for fault in faults]}
                )
        with_history = () if unanswered.is_over else wanted
        return _page(
            {
                "partitions": len(wanted),
                "historyFaults": await self._history_faults(with_history, unread),
                "segments": read,
                "bytes": size,
                "faulty": faulty,
                "unread": unread,
            }
        )

    async def _history_faults(
        self, wanted: "Sequence[TopicIdPartition]", unread: list[str]
    ) -> list[str]:
        faults: list[str] = []
        tier = self._remote.tier
        for one in wanted if tier is not None else ():
            assert tier is not None
            try:
                faults += await verify_history(tier, ObjectKeys().history_key(one))
            except TieredError as error:
                unread.append(f"history of {one}: {error}")
        return faults

    async def skip(self, query: Query) -> Page:
        """See the module."""
        manager = self._remote.manager
        if "topic" not in query or "partition" not in query:
            return _refusal(400, "topic and partition are needed")
        start = query.get("start")
        if start is not None and not (start.isascii() and start.isdecimal()):
            return _refusal(400, "start is no offset")
        try:
            (id_partition,) = self._wanted(query)
            assert manager is not None
            skipped = await manager.skip_blocked(
                id_partition, None if start is None else int(start)
            )
        except (ValueError, TieredError, StorageError) as error:
            return _refusal(400 if isinstance(error, ValueError) else 409, str(error))
        return _page(
            {
                "topic": id_partition.topic,
                "partition": id_partition.partition,
                "start": skipped.start_offset,
                "end": skipped.end_offset,
                "bytes": skipped.size_bytes,
                "problem": skipped.problem,
                "keptAs": skipped.kept_as,
                "done": start is not None,
            }
        )

    # -- partitions ------------------------------------------------------------------------------

    def _wanted(self, query: Query) -> list[TopicIdPartition]:
        manager = self._remote.manager
        led: list[TopicIdPartition] = []
        if manager is not None:
            led = sorted([*manager.led_partitions(), *manager.held_back], key=lambda p: p[1:])
        if "topic" in query:
            led = [one for one in led if one.topic == query["topic"]]
        if "partition" in query:
            if not query["partition"].isdecimal():
                raise ValueError("partition is no number")
            led = [one for one in led if one.partition == int(query["partition"])]
        if "topic" in query and not led:
            raise ValueError(self._why_none(query["topic"], int(query.get("partition", "0"))))
        return led

    def _why_none(self, topic: str, partition: int) -> str:
        log = self._logs.log_of(topic, partition)
        if log is not None and log.has_remote_part and not log.remote_storage:
            return (
                f"topic {topic} has lost its remote.storage.enable: what was copied up to offset "
                f"{log.durable_remote_offset} is kept; the alert tier-left-behind says what next"
            )
        if log is not None and not log.config.remote_storage_enable:
            return f"topic {topic} has no remote storage: its remote.storage.enable is false"
        return "no such partition with remote storage is led here"

    def _row(self, id_partition: TopicIdPartition, *, detailed: bool) -> Mapping[str, object]:
        metadata = self._remote.metadata
        ready = metadata is not None and metadata.is_ready(id_partition)
        log = self._logs.log_of(id_partition.topic, id_partition.partition)
        row: dict[str, object] = {
            "topic": id_partition.topic,
            "topicId": format_uuid(id_partition.topic_id),
            "partition": id_partition.partition,
            "ready": ready,
        }
        if log is not None:
            row |= {
                "logStart": log.log_start_offset,
                "localLogStart": log.local_log_start_offset,
                "highestRemote": log.highest_remote_offset,
                "lastStable": log.last_stable_offset,
                "highWatermark": log.high_watermark,
                "logEnd": log.log_end_offset,
                "localBytes": log.size(),
                "copyPaused": log.config.tier_copy_paused or log.config.remote_log_copy_disable,
                "fetchPaused": log.config.tier_fetch_paused,
            }
        manager = self._remote.manager
        if manager is not None:
            row["heldBack"] = manager.held_back.get(id_partition)
            tasks = manager.tasks_of(id_partition)
            blocked = None if tasks is None or tasks.led is None else tasks.led.blocked
            row["corruptSegment"] = blocked and {
                "start": blocked.base_offset,
                "path": blocked.path,
                "problem": blocked.problem,
            }
            report = manager.scrubber.last
            row["unknownCopies"] = (
                0 if report is None else report.unknown_by_partition[id_partition]
            )
        if metadata is not None and ready:
            segments = metadata.segments(id_partition)
            row |= {
                "remoteBytes": metadata.size(id_partition),
                "remoteSegments": sum(
                    one.state is SegmentState.COPY_SEGMENT_FINISHED for one in segments
                ),
                "unfinishedSegments": sum(
                    one.state is not SegmentState.COPY_SEGMENT_FINISHED for one in segments
                ),
            }
            if detailed:
                row["remote"] = [_segment(one) for one in segments]
                if log is not None:
                    row["gaps"] = [list(gap) for gap in find_gaps(metadata, id_partition, log)]
        if detailed and log is not None:
            row["local"] = list(_local_segments(log))
            row["leaderEpochs"] = [list(entry) for entry in log.leader_epochs.entries()]
        return row

    def _finished(self, id_partition: TopicIdPartition) -> Sequence[RemoteLogSegmentMetadata]:
        metadata = self._remote.metadata
        if metadata is None or not metadata.is_ready(id_partition):
            return ()
        return [
            one
            for one in metadata.segments(id_partition)
            if one.state is SegmentState.COPY_SEGMENT_FINISHED
        ]


def _segment(segment: RemoteLogSegmentMetadata) -> dict[str, object]:
    return {
        "topic": segment.partition.topic,
        "partition": segment.partition.partition,
        "id": format_uuid(segment.id),
        "start": segment.start_offset,
        "end": segment.end_offset + 1,
        "bytes": segment.segment_size_bytes,
        "state": segment.state.name,
        "maxTimestampMs": segment.max_timestamp_ms,
        "leaderEpochs": [list(entry) for entry in segment.segment_leader_epochs],
    }


def _local_segments(log: "Log") -> Iterator[Mapping[str, object]]:
    segments = log.segment_facts()
    for index, segment in enumerate(segments):
        following = segments[index + 1].base_offset if index + 1 < len(segments) else None
        yield {
            "start": segment.base_offset,
            "end": log.log_end_offset if following is None else following,
            "bytes": segment.size,
            "active": following is None,
        }


def _report(report: Any) -> Mapping[str, object]:
    fields = {one.name: getattr(report, one.name) for one in dataclasses.fields(report)}
    del fields["unknown_by_partition"]
    names = {name: _camel(name) for name in fields}
    fields["missing"] = [_segment(one) for one in report.missing]
    fields["unknown"] = [
        {
            "topic": one.segment_id.partition.topic,
            "partition": one.segment_id.partition.partition,
            "id": format_uuid(one.segment_id.id),
            "start": one.start_offset,
            "bytes": one.size_bytes,
        }
        for one in report.unknown
    ]
    return {names[name]: value for name, value in fields.items()}


def _faults(one: "SegmentFaults") -> Mapping[str, object]:
    return {
        **_segment(one.segment),
        "foundMs": one.found_ms,
        "faults": [fault._asdict() for fault in one.faults],
    }


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _page(document: Mapping[str, object]) -> Page:
    return Page(200, json.dumps(document, default=str).encode(), JSON_TYPE)


def _refusal(status: int, problem: str) -> Page:
    return Page(status, json.dumps({"error": problem}).encode(), JSON_TYPE)
