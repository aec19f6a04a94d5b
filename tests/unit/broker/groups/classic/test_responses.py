"""Answers to parked requests."""

from broker.groups.classic.responses import (
    answer_and_remove,
    answer_join,
    answer_sync,
    joined,
    take_syncs,
)
from protocol.error_codes import ErrorCode
from tests.harness.groups import SESSION_MS, Harness, Parked


def test_list_is_only_made_when_it_is_asked_for() -> None:
    h = Harness()
    ids, _ = h.stable_group(2)
    member = h.group().members[ids[0]]
    assert joined(h.group(), member, members=False).members == []
    assert [m.member_id for m in joined(h.group(), member, members=True).members] == ids


def test_nobody_waits_nothing_is_answered() -> None:
    h = Harness()
    ids, _ = h.stable_group()
    member = h.group().members[ids[0]]
    answer_join(h.group(), member, ErrorCode.UNKNOWN_MEMBER_ID)
    answer_sync(member, ErrorCode.UNKNOWN_MEMBER_ID)
    assert take_syncs([member]) == []
    assert h.group().awaiting_join == 0


def test_answered_sync_starts_the_session_anew() -> None:
    """It may have run out, excused, while the request was parked."""
    h = Harness()
    ids, _ = h.stable_group()
    member = h.group().members[ids[0]]
    for is_taken in (True, False):
        member.sync_reply = parked = Parked()
        h.timer.advance(SESSION_MS)
        assert not member.session.pending
        if is_taken:
            assert take_syncs([member]) == [(parked, member)]
        else:
            answer_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
        assert member.session.pending
        assert member.sync_reply is None


def test_removed_member_is_told_to_start_over() -> None:
    h = Harness()
    ids, _ = h.stable_group()
    member, join, sync = h.group().members[ids[0]], Parked(), Parked()
    h.group().set_join_reply(member, join)
    member.sync_reply = sync
    answer_and_remove(h.group(), member)
    assert join.error is sync.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert join.response.member_id == ""
    assert not h.group().members
    assert not member.session.pending
