"""What is in remote storage, seen from outside: the bucket itself, without asking any broker.

Two layouts are known, each with one commit point per segment:

    Varve, Aiven's plugin    <prefix><topic>-<topic id>/<partition>/<start, 20 digits>-<uuid>.<kind>
                             kinds log, indexes, rsm-manifest; whole once the manifest is there
    LocalTieredStorage       kafka-tiered-storage/<topic>-<partition>-<topic id>/
                             <start, 20 digits>-<uuid>.<kind>
                             kinds log, index, timeindex, txnindex, leader_epoch_checkpoint,
                             snapshot; whole once the log and every required kind is there

Ids are base64url without padding.
"""

import base64
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from protocol.records.batch import iterate_batches
from protocol.records.record import Record, iterate_records


class Bucket(Protocol):
    """Keys and bytes."""

    def keys(self) -> list[str]:
        """All there are, in order."""
        ...

    def read(self, key: str) -> bytes:
        """One object."""
        ...


class DirectoryBucket(Bucket):
    """A filesystem store: keys are paths below the root. Files being written have other names."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def keys(self) -> list[str]:
        found = []
        # Folders go while they are looked through, which `Path.rglob` does not bear.
        for folder, _, names in os.walk(self.root):
            for name in names:
                key = str((Path(folder) / name).relative_to(self.root))
                if not any(part.startswith(".") for part in key.split("/")):
                    found.append(key)
        return sorted(found)

    def read(self, key: str) -> bytes:
        return (self.root / key).read_bytes()


class S3Bucket(Bucket):
    """A bucket behind S3's protocol; `client` is botocore's."""

    def __init__(self, client: Any, name: str) -> None:
        self.client = client
        self.name = name

    def keys(self) -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return sorted(item["Key"] for page in pages for item in page.get("Contents", ()))

    def read(self, key: str) -> bytes:
        body: bytes = self.client.get_object(Bucket=self.name, Key=key)["Body"].read()
        return body


@dataclass(frozen=True, slots=True)
class RemoteSegment:
    """One whole segment; `end_offset` is its last offset, inclusive, as KIP-405 has it."""

    topic: str
    topic_id: UUID
    partition: int
    base_offset: int
    end_offset: int
    segment_id: str
    records: tuple[Record, ...]
    """Those a client would see: no markers."""


def _id_of(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def _ordered(data: bytes) -> tuple[int, tuple[Record, ...]]:
    """Last offset and visible records of a segment's log."""
    view, records, last = memoryview(data), [], -1
    for position, header in iterate_batches(view):
        last = header.last_offset
        if not header.is_control:
            records += list(iterate_records(view[position:], max_size=64 << 20))
    return last, tuple(records)


_VARVE = re.compile(
    r"(?:.*/)?(?P<topic>[^/]+)-(?P<id>[\w-]{22})/(?P<partition>\d+)/"
    r"(?P<start>\d{20})-(?P<segment>[\w-]{22})\.(?P<kind>log|indexes|rsm-manifest)"
)
_LOCAL = re.compile(
    r"(?:.*/)?(?P<topic>[^/]+)-(?P<partition>\d+)-(?P<id>[\w-]{22})/"
    r"(?P<start>\d{20})-(?P<segment>[\w-]{22})\.(?P<kind>[a-z_]+)"
)


@dataclass(frozen=True, slots=True)
class Layout:
    """How keys are read, and which kinds make a segment whole."""

    pattern: re.Pattern[str]
    required: frozenset[str]


VARVE_LAYOUT = Layout(_VARVE, frozenset({"log", "indexes", "rsm-manifest"}))
LOCAL_TIERED_STORAGE_LAYOUT = Layout(
    _LOCAL, frozenset({"log", "index", "timeindex", "leader_epoch_checkpoint", "snapshot"})
)


class RemoteView:
    """A bucket and its layout."""

    def __init__(
        self, bucket: Bucket, layout: Layout, log_of: Callable[[str, bytes], bytes] | None = None
    ) -> None:
        """Look at a bucket.

        Args:
            bucket: Where.
            layout: See the module.
            log_of: Gives the plain log of a stored one, when it is compressed or encrypted.
        """
        self.bucket = bucket
        self.layout = layout
        self._log_of = log_of or (lambda _key, data: data)
        self._cache: dict[str, tuple[int, tuple[Record, ...]]] = {}

    def _matches(self, topic: str | None) -> list[tuple[str, re.Match[str]]]:
        found = []
        for key in self.bucket.keys():  # noqa: SIM118  because a bucket is no dictionary
            match = self.layout.pattern.fullmatch(key)
            if match and topic in {None, match["topic"]}:
                found.append((key, match))
        return found

    def segments(self, topic: str, partition: int | None = None) -> list[RemoteSegment]:
        """Whole segments of a topic, by partition and start; half ones are not there yet."""
        kinds: dict[tuple[str, ...], dict[str, str]] = {}
        for key, match in self._matches(topic):
            if partition in {None, int(match["partition"])}:
                name = (match["partition"], match["start"], match["segment"], match["id"])
                kinds.setdefault(name, {})[match["kind"]] = key
        found = []
        for (index, start, segment, topic_id), keys in sorted(kinds.items()):
            if not self.layout.required <= keys.keys():
                continue
            try:
                last, records = self._read(keys["log"])
            except (FileNotFoundError, LookupError):
                continue  # deleted since it was listed
            found.append(
                RemoteSegment(
                    topic, _id_of(topic_id), int(index), int(start), last, segment, records
                )
            )
        return sorted(found, key=lambda one: (one.partition, one.base_offset))

    def _read(self, key: str) -> tuple[int, tuple[Record, ...]]:
        """Objects never change, so each is read once."""
        if key not in self._cache:
            self._cache[key] = _ordered(self._log_of(key, self.bucket.read(key)))
        return self._cache[key]

    def keys_of(self, topic: str, partition: int | None = None) -> list[str]:
        """Every object of a topic, whole segments or not."""
        return [
            key
            for key, match in self._matches(topic)
            if partition in {None, int(match["partition"])}
        ]

    def topic_ids(self, topic: str) -> set[UUID]:
        """All ids under which objects of a topic of that name lie."""
        return {_id_of(match["id"]) for _, match in self._matches(topic)}
