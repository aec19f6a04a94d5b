"""Sessions of followers: opening, going on, errors, and what ends them."""

from typing import Any

import pytest

from broker.replication.followers.follower_sessions import (
    SESSIONS_PER_REPLICA_MAX,
    FollowerSession,
    FollowerSessions,
)
from broker.replication.followers.parked_fetch import ParkedFetch
from protocol.error_codes import ErrorCode
from protocol.hot.fetch import FetchPartition, FetchRequest, FetchTopic
from storage.environment.randomness import SeededRandomness

TOPIC = b"t" * 16


def request(
    session_id: int,
    epoch: int,
    indexes: tuple[int, ...] = (),
    *,
    forgotten: tuple[int, ...] = (),
    replica_epoch: int = 20,
) -> FetchRequest:
    partitions = [FetchPartition(index, 5, 0, -1, 0, 100) for index in indexes]
    return FetchRequest(
        2,
        500,
        1,
        1000,
        0,
        session_id,
        epoch,
        [FetchTopic(None, TOPIC, partitions)] if partitions else [],
        [(TOPIC, list(forgotten))] if forgotten else [],
        replica_epoch=replica_epoch,
    )


class Sessions:
    def __init__(self) -> None:
        self.due: list[FollowerSession] = []
        self.all = FollowerSessions(SeededRandomness(1), self.due.append)

    def go(self, wanted: FetchRequest) -> FollowerSession:
        session = self.all.begin(wanted, 0.0, uses_topic_ids=True)
        assert isinstance(session, FollowerSession)
        return session


@pytest.fixture
def sessions() -> Sessions:
    return Sessions()


def test_a_session_keeps_what_was_listed_once(sessions: Sessions) -> None:
    session = sessions.go(request(0, 0, (0, 1, 2)))
    assert session.session_id != 0
    again = sessions.go(request(session.session_id, 1, (3,), forgotten=(0,)))
    assert again is session
    assert [index for _, index in session.partitions] == [1, 2, 3]
    assert (len(sessions.all), sessions.all.partition_count) == (1, 3)


def test_only_what_is_listed_or_changes_is_looked_at(sessions: Sessions) -> None:
    session = sessions.go(request(0, 0, (0, 1)))
    assert [one.index for one in session.changed] == [0, 1]
    session.changed.clear()
    sessions.go(request(session.session_id, 1, (1,)))
    assert [one.index for one in session.changed] == [1]


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ((99, 1), ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ((None, 3), ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    ],
)
def test_what_does_not_go_on_is_an_error(
    sessions: Sessions, wanted: tuple[int | None, int], code: ErrorCode
) -> None:
    session = sessions.go(request(0, 0, (0,)))
    session_id = session.session_id if wanted[0] is None else wanted[0]
    assert sessions.all.begin(request(session_id, wanted[1]), 0.0, uses_topic_ids=True) is code


def test_names_and_ids_do_not_mix(sessions: Sessions) -> None:
    session = sessions.go(request(0, 0, (0,)))
    code = sessions.all.begin(request(session.session_id, 1), 0.0, uses_topic_ids=False)
    assert code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_new_life_of_the_follower_ends_its_old_sessions(sessions: Sessions) -> None:
    old = sessions.go(request(0, 0, (0,)))
    (followed,) = old.partitions.values()
    code = sessions.all.begin(
        request(old.session_id, 1, replica_epoch=21), 0.0, uses_topic_ids=True
    )
    assert code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    sessions.go(request(0, 0, (0,), replica_epoch=21))
    assert len(sessions.all) == 1
    assert followed.session is None


def test_a_final_request_ends_the_session_and_opens_none(sessions: Sessions) -> None:
    session = sessions.go(request(0, 0, (0,)))
    last = sessions.go(request(session.session_id, -1, (0,)))
    assert last.session_id == 0
    assert len(sessions.all) == 0


def test_sessions_of_a_follower_are_bounded(sessions: Sessions) -> None:
    first = sessions.go(request(0, 0, (0,)))
    for _ in range(SESSIONS_PER_REPLICA_MAX):
        sessions.go(request(0, 0, (0,)))
    assert len(sessions.all) == SESSIONS_PER_REPLICA_MAX
    code = sessions.all.begin(request(first.session_id, 1), 0.0, uses_topic_ids=True)
    assert code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_only_records_wake_who_waits_and_once(sessions: Sessions) -> None:
    session = sessions.go(request(0, 0, (0,)))
    (followed,) = session.partitions.values()
    session.changed_at(followed, has_records=True)
    assert sessions.due == []
    nobody: Any = None  # only whether one is parked matters
    session.parked = ParkedFetch(
        nobody, nobody, session, version=17, min_bytes=1, max_bytes=1, is_first=False
    )
    session.changed_at(followed, has_records=False)
    assert sessions.due == []
    session.changed_at(followed, has_records=True)
    session.changed_at(followed, has_records=True)
    assert sessions.due == [session]
