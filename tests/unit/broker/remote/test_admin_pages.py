"""What the admin port says of remote storage, and does about it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from broker.network.admin_http import Page
from broker.remote.admin_pages import RemoteParts, TierPages
from config.tier import TierConfig
from config.topic import TopicConfig
from storage.checkpoints.leader_epochs import LeaderEpochCache
from storage.types.uuid_text import format_uuid
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.tiered.scripted_tier import FakeTier
from tiered.errors import RemoteStorageError, StoreUnavailableError
from tiered.maintenance.scrub_report import ScrubReport
from tiered.maintenance.unanswered import UNANSWERED_MAX
from tiered.maintenance.verifier import SegmentFaults
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
)
from tiered.tasks.led_partition import BlockedSegment
from tiered.tasks.skip import SkippedSegment
from tiered.tier import Fault

ID = UUID(int=9)
T0, T1 = TopicIdPartition(ID, "t", 0), TopicIdPartition(ID, "t", 1)
U0 = TopicIdPartition(UUID(int=8), "u", 0)


def segment(
    who: TopicIdPartition,
    start: int,
    last: int,
    state: SegmentState = SegmentState.COPY_SEGMENT_FINISHED,
) -> RemoteLogSegmentMetadata:
    return RemoteLogSegmentMetadata(
        RemoteLogSegmentId(who, UUID(int=start + 1)),
        start,
        last,
        1_700_000_000_000,
        1,
        1_700_000_000_000,
        100,
        (SegmentEpoch(0, start),),
        state,
    )


@dataclass
class Metadata:
    """Segments by partition; those not named are not ready."""

    by_partition: dict[TopicIdPartition, list[RemoteLogSegmentMetadata]]
    lost: list[str] = field(default_factory=list)

    def losses(self) -> list[str]:
        return self.lost

    def is_ready(self, who: TopicIdPartition) -> bool:
        return who in self.by_partition

    def find_at_or_after(
        self, who: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        finished = [s for s in self.by_partition[who] if s.state == 1 and s.end_offset >= offset]
        return finished[0] if finished else None

    def segments(self, who: TopicIdPartition) -> list[RemoteLogSegmentMetadata]:
        return self.by_partition[who]

    def size(self, who: TopicIdPartition) -> int:
        return sum(
            one.segment_size_bytes
            for one in self.by_partition[who]
            if one.state is SegmentState.COPY_SEGMENT_FINISHED
        )


@dataclass
class Manager:
    """Scrubber, verifier and claim in one."""

    led: list[TopicIdPartition]
    damaged: dict[UUID, list[Fault]] = field(default_factory=dict)
    held_back: dict[TopicIdPartition, str] = field(default_factory=dict)
    fails: bool = False
    dry_runs: list[bool] = field(default_factory=list)
    skipped: list[tuple[TopicIdPartition, int | None]] = field(default_factory=list)
    report: ScrubReport = field(
        default_factory=lambda: ScrubReport(
            is_ours=True, owner="me", objects=3, missing=[segment(T0, 0, 9)]
        )
    )

    def __post_init__(self) -> None:
        self.scrubber = SimpleNamespace(last=None)
        self.collect_garbage = self._scrub
        self.verifier = SimpleNamespace(
            verify=self._verify,
            faults=[SegmentFaults(segment(T0, 0, 9), [Fault("k", 7, "p")], 5)],
            verified_segments=2,
            verified_bytes=300,
            rounds=1,
        )
        self.claim = SimpleNamespace(owner="me", is_missing=False)
        self.history = SimpleNamespace(kept=2, behind=1, oldest_behind_ms=5.0, failures=3)
        self.copies_in_flight, self.stalled_copies = 2, 1

    def led_partitions(self) -> Iterable[TopicIdPartition]:
        return iter(self.led)

    def tasks_of(self, who: TopicIdPartition) -> Any:
        problem = BlockedSegment(5, "/d/5.log", "bad", 0.0) if who == T1 else None
        return SimpleNamespace(led=SimpleNamespace(blocked=problem))

    async def skip_blocked(self, who: TopicIdPartition, start: int | None) -> SkippedSegment:
        self.skipped.append((who, start))
        if who != T1:
            raise RemoteStorageError("nothing to skip")
        return SkippedSegment(5, 9, 123, "bad", "/d/5.log.skipped")

    async def _scrub(self, *, dry_run: bool) -> ScrubReport:
        if self.fails:
            raise StoreUnavailableError("503")
        self.dry_runs.append(dry_run)
        return self.report

    async def _verify(self, one: RemoteLogSegmentMetadata) -> list[Fault]:
        if self.fails:
            raise StoreUnavailableError("503")
        return self.damaged.get(one.id, [])


def log_of(topic: str, partition: int) -> Any:
    """The local log of every partition but `u-0`, and `x`."""
    if topic in ("u", "x"):
        return None
    epochs = LeaderEpochCache("/epochs", FakeFilesystem())
    epochs.replace([(0, 0), (2, 15)])
    segments = [SimpleNamespace(base_offset=10, size=40), SimpleNamespace(base_offset=15, size=4)]
    return SimpleNamespace(
        log_start_offset=0,
        local_log_start_offset=10,
        highest_remote_offset=9,
        last_stable_offset=18,
        high_watermark=19,
        log_end_offset=20,
        size=lambda: 44,
        config=TopicConfig(
            remote_storage_enable=topic not in ("plain", "lost"), tier_copy_paused=True
        ),
        remote_storage=topic not in ("plain", "lost"),
        has_remote_part=topic != "plain",
        durable_remote_offset=9,
        segment_facts=lambda: segments,
        leader_epochs=epochs,
    )


class World:
    """Pages over all of this; `manager` None: nobody has needed remote storage yet."""

    def __init__(self, manager: Manager | None) -> None:
        finished = [segment(T0, 0, 4), segment(T0, 5, 9)]
        begun = segment(T0, 10, 14, SegmentState.COPY_SEGMENT_STARTED)
        self.remote = SimpleNamespace(
            settings=TierConfig(rsm_config_storage_root="/o", tier_fetch_paused=True),
            location="file:///o/",
            manager=manager,
            metadata=Metadata({T0: [*finished, begun], T1: []}) if manager else None,
            tier=FakeTier() if manager else None,
        )
        self.pages = TierPages(
            cast("RemoteParts", self.remote),
            SimpleNamespace(log_of=log_of),
            cluster_id="me",
            node_id=4,
        )

    async def get(self, **query: str) -> Any:
        return document(await self.pages.pages["/tier"](query))

    async def post(self, path: str, **query: str) -> Page:
        names = {name.replace("_", "-"): text for name, text in query.items()}
        return await self.pages.actions[path](names)


def document(page: Page, status: int = 200) -> Any:
    assert page.status == status, page.body
    assert page.content_type.startswith("application/json")
    return json.loads(page.body)


async def test_every_led_partition_has_a_row() -> None:
    """In order; what is not known is left out."""
    page = await World(Manager([U0, T1, T0])).get()
    assert [(r["topic"], r["partition"], r["ready"]) for r in page["partitions"]] == [
        ("t", 0, True),
        ("t", 1, True),
        ("u", 0, False),
    ]
    row = page["partitions"][0]
    assert row["topicId"] == format_uuid(ID)
    assert (row["logStart"], row["localLogStart"], row["highestRemote"]) == (0, 10, 9)
    assert (row["lastStable"], row["highWatermark"], row["logEnd"]) == (18, 19, 20)
    assert (row["localBytes"], row["remoteBytes"]) == (44, 200)
    assert (row["remoteSegments"], row["unfinishedSegments"]) == (2, 1)
    assert (row["copyPaused"], row["fetchPaused"]) == (True, False)
    assert "remote" not in row
    assert "logStart" not in page["partitions"][2]


async def test_what_nobody_has_and_what_holds_up_copying_is_told() -> None:
    page = await World(Manager([T0, T1])).get(topic="t")
    first, second = page["partitions"]
    assert (first["gaps"], second["gaps"]) == ([], [[0, 10]])
    assert first["corruptSegment"] is None
    assert second["corruptSegment"] == {"start": 5, "path": "/d/5.log", "problem": "bad"}


async def test_a_corrupt_segment_is_given_up_if_its_offset_is_named() -> None:
    world = World(Manager([T0, T1]))
    told = document(await world.post("/tier/skip", topic="t", partition="1"))
    assert (told["start"], told["end"], told["bytes"], told["done"]) == (5, 9, 123, False)
    told = document(await world.post("/tier/skip", topic="t", partition="1", start="5"))
    assert (told["done"], told["keptAs"], told["problem"]) == (True, "/d/5.log.skipped", "bad")
    assert world.remote.manager.skipped == [(T1, None), (T1, 5)]
    for status, query in (
        (409, {"topic": "t", "partition": "0"}),
        (400, {"topic": "t"}),
        (400, {"topic": "t", "partition": "9"}),
        (400, {"topic": "t", "partition": "1", "start": "-5"}),
    ):
        assert document(await world.post("/tier/skip", **query), status)["error"]


async def test_the_whole_says_how_it_is() -> None:
    """The bucket, switches, work, faults."""
    page = await World(Manager([T0])).get()
    assert (page["clusterId"], page["nodeId"], page["location"]) == ("me", 4, "file:///o/")
    assert (page["open"], page["copyPaused"], page["fetchPaused"]) == (True, False, True)
    assert (page["bucketOwner"], page["copiesInFlight"], page["stalledCopies"]) == ("me", 2, 1)
    assert page["garbage"] is None
    assert page["verified"] == {"segments": 2, "bytes": 300, "rounds": 1}
    (fault,) = page["faults"]
    assert (fault["end"], fault["faults"]) == (
        10,
        [{"key": "k", "position": 7, "problem": "p"}],
    )
    assert page["tier"] == {"fake": {"calls": 0}}


async def test_a_topics_segments_are_told_when_asked_for() -> None:
    """On both sides, with exclusive ends."""
    world = World(Manager([T0, T1, U0]))
    (row,) = (await world.get(topic="t", partition="0"))["partitions"]
    assert [(one["start"], one["end"], one["state"]) for one in row["remote"]] == [
        (0, 5, "COPY_SEGMENT_FINISHED"),
        (5, 10, "COPY_SEGMENT_FINISHED"),
        (10, 15, "COPY_SEGMENT_STARTED"),
    ]
    assert row["local"] == [
        {"start": 10, "end": 15, "bytes": 40, "active": False},
        {"start": 15, "end": 20, "bytes": 4, "active": True},
    ]
    assert row["leaderEpochs"] == [[0, 0], [2, 15]]
    assert len((await world.get(topic="t"))["partitions"]) == 2
    assert "remote" not in (await world.get(topic="u"))["partitions"][0]


async def test_what_makes_no_sense_is_refused() -> None:
    """With a reason."""
    world = World(Manager([T0]))
    page = world.pages.pages["/tier"]
    assert "no number" in document(await page({"partition": "x"}), 400)["error"]
    assert "no such partition" in document(await page({"topic": "x"}), 400)["error"]
    assert "enable is false" in document(await page({"topic": "plain"}), 400)["error"]
    assert "up to offset 9 is kept" in document(await page({"topic": "lost"}), 400)["error"]
    assert "topic is missing" in document(await world.post("/tier/verify"), 400)["error"]
    assert "no such" in document(await world.post("/tier/verify", topic="x"), 400)["error"]


async def test_before_the_first_tiered_topic_there_is_little_to_say() -> None:
    """And nothing to do."""
    world = World(None)
    page = await world.get()
    assert (page["open"], page["partitions"]) == (False, [])
    assert document(await world.post("/tier/gc"), 503)["error"]
    assert document(await world.post("/tier/verify", topic="t"), 400)["error"]


async def test_garbage_is_collected_on_demand() -> None:
    """Or only looked at; a store that fails is told."""
    manager = Manager([T0])
    world = World(manager)
    report = document(await world.post("/tier/gc"))
    assert (report["isOurs"], report["objects"], report["removedKeys"]) == (True, 3, [])
    assert report["missing"][0]["end"] == 10
    await world.post("/tier/gc", dry_run="true")
    assert manager.dry_runs == [False, True]
    manager.fails = True
    assert document(await world.post("/tier/gc"), 503) == {"error": "503"}


async def test_segments_are_verified_on_demand() -> None:
    """Finished ones; damage and what could not be read are told apart."""
    manager = Manager([T0, T1, U0], damaged={UUID(int=6): [Fault("k", -1, "gone")]})
    world = World(manager)
    told = document(await world.post("/tier/verify", topic="t"))
    assert (told["partitions"], told["segments"], told["bytes"]) == (2, 2, 200)
    (faulty,) = told["faulty"]
    assert (faulty["start"], faulty["faults"][0]["problem"]) == (5, "gone")
    assert told["unread"] == []
    assert document(await world.post("/tier/verify", topic="u"))["segments"] == 0
    manager.fails = True
    told = document(await world.post("/tier/verify", topic="t", partition="0"))
    assert (len(told["unread"]), told["segments"], told["bytes"]) == (2, 0, 0)


async def test_verification_is_given_up_when_the_store_does_not_answer() -> None:
    """Where it hangs, each call lasts a minute."""
    manager = Manager([T0])
    world = World(manager)
    world.remote.metadata = Metadata({T0: [segment(T0, at, at + 4) for at in range(0, 50, 5)]})
    told = document(await world.post("/tier/verify", topic="t", partition="0"))
    assert (told["segments"], told["unread"]) == (10, [])
    manager.fails = True
    told = document(await world.post("/tier/verify", topic="t", partition="0"))
    assert told["segments"] == 0
    assert len(told["unread"]) == UNANSWERED_MAX + 1
    assert told["unread"][-1] == "7 more segments, as the object store does not answer"
