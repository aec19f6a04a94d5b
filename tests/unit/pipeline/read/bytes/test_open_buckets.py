import threading
from collections.abc import Iterator

import pytest

from pipeline.plan.bucket import Bucket, BucketOptions
from pipeline.plan.errors import PlanError
from pipeline.read.bytes.open_buckets import OPEN_MAX, OpenBuckets
from storage.environment.randomness import SeededRandomness
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.tiered.memory_object_store import MemoryObjectStore
from tiered.format.key_ring import KeyRing


class Opener:
    """Opens buckets in memory, and remembers which."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.stores: dict[str, MemoryObjectStore] = {}
        self.threads: set[str] = set()

    async def __call__(self, options: BucketOptions) -> Bucket:
        if options.location == "s3://broken":
            raise PlanError("it is broken")
        self.threads.add(threading.current_thread().name)
        self.opened.append(options.location)
        store = self.stores[options.location] = MemoryObjectStore(ManualClock())
        randomness = SeededRandomness(1)
        return Bucket(
            store,
            KeyRing("", {}, randomness),
            filesystem=FakeFilesystem(ManualClock()),
            clock=ManualClock(),
            randomness=randomness,
        )


@pytest.fixture
def opener() -> Opener:
    return Opener()


@pytest.fixture
def buckets(opener: Opener) -> Iterator[OpenBuckets]:
    buckets = OpenBuckets(opener)
    yield buckets
    buckets.close()


def options(name: str) -> BucketOptions:
    return BucketOptions(f"s3://bucket-{name}")


def test_a_bucket_stays_open(buckets: OpenBuckets, opener: Opener) -> None:
    first = buckets.lend(options("a"))
    assert buckets.lend(options("a")) is first
    assert opener.opened == ["s3://bucket-a"]
    assert opener.threads == {"varve-store"}


def test_other_credentials_are_another_bucket(buckets: OpenBuckets, opener: Opener) -> None:
    buckets.lend(options("a"))
    buckets.lend(options("a")._replace(access_key_id="id", secret_access_key="secret"))
    assert len(opener.opened) == 2


def test_the_one_used_longest_ago_is_closed_for_another(
    buckets: OpenBuckets, opener: Opener
) -> None:
    for name in "abac":
        buckets.lend(options(name))
    assert OPEN_MAX == 2
    closed = {location for location, store in opener.stores.items() if store.closed}
    assert closed == {"s3://bucket-b"}


def test_one_that_cannot_be_opened_is_not_kept(buckets: OpenBuckets) -> None:
    for _ in range(2):
        with pytest.raises(PlanError, match="it is broken"):
            buckets.lend(BucketOptions("s3://broken"))


def test_closing_closes_all_and_the_next_begins_anew(buckets: OpenBuckets, opener: Opener) -> None:
    before = buckets.lend(options("a"))
    buckets.close()
    assert opener.stores["s3://bucket-a"].closed
    assert not before.thread.is_alive
    assert buckets.lend(options("a")).thread.is_alive


def test_a_thread_that_is_gone_is_replaced(buckets: OpenBuckets, opener: Opener) -> None:
    """As in a process that was forked."""
    before = buckets.lend(options("a"))
    before.thread.close()
    assert buckets.lend(options("a")).thread.is_alive
    assert opener.opened == ["s3://bucket-a"] * 2
    assert not opener.stores["s3://bucket-a"].closed
