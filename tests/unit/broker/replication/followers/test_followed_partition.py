"""A followed partition takes what the latest request asks for, and drops reads for the former."""

from broker.replication.followers.followed_partition import FollowedPartition
from protocol.hot.fetch import FetchPartition
from storage.index.reads import CachedReads


class Read:
    """A read of a thread."""

    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Session:
    fetched_ms = 7.0
    confirmed_ms = 5.0

    def changed_at(self, followed: FollowedPartition, *, has_records: bool) -> None:
        raise AssertionError("nothing changes here")


def wanted(offset: int) -> FetchPartition:
    return FetchPartition(3, 5, offset, 4, 1, 100)


def test_a_later_request_replaces_the_earlier() -> None:
    followed = FollowedPartition(Session(), b"id", wanted(10))
    followed.is_listed = False
    read = Read()
    followed.cold = read  # type: ignore[assignment]  # only its end matters here
    followed.found = CachedReads()
    followed.found.keep("key", "value")
    followed.list(wanted(20))
    assert (followed.fetch_offset, followed.is_listed) == (20, True)
    assert read.is_cancelled
    assert [followed.cold, followed.found] == [None, None]


def test_who_has_left_its_session_is_told_nothing() -> None:
    followed = FollowedPartition(Session(), b"id", wanted(10))
    followed.leave()
    assert followed.session is None
