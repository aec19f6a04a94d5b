"""Members of share groups: they join, are given partitions, leave, and are fenced."""

import pytest

from broker.groups.classic.classic_group import create_classic_group
from broker.groups.share.share_group import ShareGroup
from protocol.error_codes import ErrorCode
from tests.fakes.broker.offsets_partition import topic_image
from tests.harness.share_groups import (
    BAR,
    FOO,
    HEARTBEAT_MS,
    SESSION_MS,
    ShareHarness,
)


@pytest.fixture
def shard() -> ShareHarness:
    return ShareHarness()


# -- join --


def test_the_first_member_gets_everything_with_its_second_heartbeat(shard: ShareHarness) -> None:
    first = shard.enter()
    assert (first.epoch, first.assignment) == (1, {})
    assert not first.is_parked
    assert first.response.heartbeat_interval_ms == HEARTBEAT_MS
    assert shard.states() == {(FOO, p): -1 for p in range(4)}
    second = shard.beat("m1", 1)
    assert (second.epoch, second.assignment) == (2, {"foo": [0, 1, 2, 3]})
    third = shard.beat("m1", 2)
    assert (third.epoch, third.assignment) == (2, None)
    shard.check()


def test_state_begins_in_the_epoch_of_the_group(shard: ShareHarness) -> None:
    shard.enter()
    assert shard.persister.states[shard.key(FOO, 0)] == (1, -1)


def test_members_share_partitions(shard: ShareHarness) -> None:
    for member_id in ("m1", "m2", "m3", "m4", "m5"):
        shard.enter(member_id)
    shard.settle_members()
    owned = [shard.owned(member_id)["foo"] for member_id in shard.share_group().members]
    assert sorted(len(partitions) for partitions in owned) == [1, 1, 2, 2, 2]
    assert {partition for partitions in owned for partition in partitions} == {0, 1, 2, 3}
    shard.check()


def test_a_member_that_leaves_makes_room(shard: ShareHarness) -> None:
    shard.enter("m1")
    shard.enter("m2")
    shard.settle_members()
    assert len(shard.owned("m1")["foo"]) == 2
    left = shard.exit("m2")
    assert (left.epoch, left.assignment) == (-1, None)
    assert shard.follow("m1").assignment == {"foo": [0, 1, 2, 3]}
    shard.check()


def test_the_last_member_leaves_an_empty_group(shard: ShareHarness) -> None:
    shard.enter()
    shard.exit()
    group = shard.share_group()
    assert (group.state_name, group.is_empty, group.group_epoch) == ("Empty", True, 2)
    assert shard.initialized() == {FOO: {0, 1, 2, 3}}
    again = shard.enter()
    assert (again.epoch, again.assignment) == (3, {"foo": [0, 1, 2, 3]})
    shard.check()


def test_full_requests_are_answered_with_the_assignment(shard: ShareHarness) -> None:
    shard.enter()
    shard.settle_members()
    epoch = shard.member("m1").member_epoch
    assert shard.beat("m1", epoch, topics=["foo"]).assignment == {"foo": [0, 1, 2, 3]}


def test_a_quiet_heartbeat_writes_nothing(shard: ShareHarness) -> None:
    shard.enter()
    shard.settle_members()
    end = shard.log.ends[0]
    assert shard.follow().error is ErrorCode.NONE
    assert shard.log.ends[0] == end


# -- subscriptions and topics --


def test_a_subscription_changes(shard: ShareHarness) -> None:
    shard.enter()
    shard.settle_members()
    changed = shard.beat("m1", 2, topics=["bar"])
    assert (changed.epoch, changed.assignment) == (3, {})
    assert shard.beat("m1", 3).assignment == {"bar": [0, 1]}
    shard.check()


def test_a_topic_that_does_not_exist_yet(shard: ShareHarness) -> None:
    shard.set_topics(topic_image("bar", 2, 2))
    assert shard.enter("m1", "foo").assignment == {}
    shard.settle_members()
    assert shard.states() == {}
    shard.set_topics(topic_image("foo", 1, 4), topic_image("bar", 2, 2))
    shard.settle_members()
    assert shard.owned("m1") == {"foo": [0, 1, 2, 3]}
    shard.check()


def test_a_topic_grows(shard: ShareHarness) -> None:
    shard.enter()
    shard.settle_members()
    shard.set_topics(topic_image("foo", 1, 6), topic_image("bar", 2, 2))
    shard.settle_members()
    assert shard.owned("m1") == {"foo": [0, 1, 2, 3, 4, 5]}
    assert len(shard.states()) == 6
    shard.check()


def test_a_topic_is_deleted_and_made_anew(shard: ShareHarness) -> None:
    shard.enter("m1", "foo", "bar")
    shard.settle_members()
    shard.set_topics(topic_image("bar", 2, 2))
    assert shard.initialized() == {BAR: {0, 1}}
    shard.settle_members()
    assert shard.owned("m1") == {"bar": [0, 1]}
    shard.set_topics(topic_image("foo", 3, 1), topic_image("bar", 2, 2))
    shard.settle_members()
    assert len(shard.member("m1").assigned) == 2
    shard.check()


def test_state_of_topics_that_are_not_there_is_kept_until_they_are_deleted(
    shard: ShareHarness,
) -> None:
    """They may come back, where the metadata store was lost."""
    shard.enter("m1", "foo", "bar")
    shard.controller.image = shard.controller._image_of([topic_image("bar", 2, 2)])
    shard.restart()
    shard.check()
    shard.settle_members()
    assert shard.owned("m1") == {"bar": [0, 1]}
    assert shard.initialized() == {FOO: {0, 1, 2, 3}, BAR: {0, 1}}
    shard.set_topics(topic_image("foo", 1, 4), topic_image("bar", 2, 2))
    states = shard.states()
    shard.settle_members()
    assert shard.owned("m1") == {"foo": [0, 1, 2, 3], "bar": [0, 1]}
    assert shard.states() == states, "nothing is begun anew"
    shard.shares.forget_topics(shard.share_group(), {FOO})
    assert shard.initialized() == {BAR: {0, 1}}


# -- share state --


def test_partitions_without_state_are_given_to_nobody(shard: ShareHarness) -> None:
    shard.persister.hold = True
    shard.enter()
    assert shard.follow().assignment is None
    assert shard.owned("m1") == {}
    shard.persister.release()
    assert shard.follow().assignment == {"foo": [0, 1, 2, 3]}
    shard.check()


def test_state_is_asked_for_once(shard: ShareHarness) -> None:
    shard.persister.hold = True
    shard.enter("m1")
    shard.enter("m2")
    assert len(shard.persister.held) == 4
    shard.check()


def test_state_that_could_not_be_begun_is_asked_for_again(shard: ShareHarness) -> None:
    shard.persister.fail_with = {2: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    shard.enter()
    assert shard.initialized() == {FOO: {0, 1, 3}}
    assert shard.follow().assignment == {"foo": [0, 1, 3]}
    shard.persister.fail_with = {}
    shard.follow()
    shard.follow()
    assert shard.owned("m1") == {"foo": [0, 1, 2, 3]}
    shard.check()


def test_state_that_nobody_hears_of_is_asked_for_after_a_while(shard: ShareHarness) -> None:
    shard.persister.hold = True
    shard.enter()
    shard.persister.held.clear()
    shard.timer.advance(29_999)
    shard.follow()
    assert not shard.persister.held
    shard.timer.advance(1)
    shard.follow()
    assert len(shard.persister.held) == 4


def test_a_new_coordinator_asks_anew(shard: ShareHarness) -> None:
    shard.persister.hold = True
    shard.enter()
    shard.restart()
    shard.persister.hold = False
    assert shard.follow().assignment is None
    assert shard.follow().assignment == {"foo": [0, 1, 2, 3]}
    shard.check()


def test_an_answer_after_the_coordinator_has_gone_changes_nothing(shard: ShareHarness) -> None:
    shard.persister.hold = True
    shard.enter()
    end = shard.log.ends[0]
    shard.shares.close()
    shard.persister.release()
    assert shard.log.ends[0] == end


def test_many_partitions_are_begun_some_at_a_time() -> None:
    shard = ShareHarness(None, topic_image("foo", 1, 250))
    shard.enter()
    assert len(shard.states()) == 100
    shard.timer.advance(10)
    assert len(shard.states()) == 250
    assert shard.initialized() == {FOO: set(range(250))}


# -- who is it --


def test_a_member_in_a_wrong_epoch_is_fenced(shard: ShareHarness) -> None:
    shard.enter()
    shard.settle_members()
    assert shard.beat("m1", 3).error is ErrorCode.FENCED_MEMBER_EPOCH
    shard.beat("m1", 2, topics=["foo", "bar"])
    shard.settle_members()
    assert shard.member("m1").member_epoch == 4
    assert shard.beat("m1", 2).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert shard.beat("m1", 3).epoch == 4


def test_a_member_joins_again(shard: ShareHarness) -> None:
    shard.enter()
    shard.settle_members()
    again = shard.enter()
    assert (again.epoch, again.assignment) == (2, {"foo": [0, 1, 2, 3]})
    assert list(shard.share_group().members) == ["m1"]


def test_unknown_members_and_groups(shard: ShareHarness) -> None:
    assert shard.beat("m1", 1).error is ErrorCode.GROUP_ID_NOT_FOUND
    assert shard.exit().error is ErrorCode.GROUP_ID_NOT_FOUND
    shard.enter()
    assert shard.beat("m2", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert shard.exit("m2").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_of_another_kind_is_not_found(shard: ShareHarness) -> None:
    create_classic_group(shard.shard, "g")
    assert shard.enter().error is ErrorCode.GROUP_ID_NOT_FOUND
    assert shard.exit().error is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_full_group() -> None:
    shard = ShareHarness(group_share_max_size=1)
    shard.enter("m1")
    assert shard.enter("m2").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert shard.enter("m1").error is ErrorCode.NONE


def test_a_silent_member_is_removed(shard: ShareHarness) -> None:
    shard.enter("m1")
    shard.enter("m2")
    shard.timer.advance(SESSION_MS - 1)
    shard.follow("m1")
    shard.timer.advance(10)
    assert list(shard.share_group().members) == ["m1"]
    assert shard.shard.stats.expired_members == 1
    assert shard.follow("m1").assignment == {"foo": [0, 1, 2, 3]}
    shard.check()


def test_while_the_log_lacks_replicas_members_stay_and_none_comes_or_goes(
    shard: ShareHarness,
) -> None:
    """The shard is loaded again for none of it: its other groups are served meanwhile."""
    shard.enter("m1")
    shard.settle_members()
    shard.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert shard.enter("m2").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert shard.exit("m1").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    epoch = shard.member("m1").member_epoch
    changed = shard.beat("m1", epoch, topics=["bar"])
    assert changed.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert shard.beat("m1", epoch, topics=["foo"]).error is ErrorCode.NONE
    shard.set_topics(topic_image("foo", 1, 8), topic_image("bar", 2, 3))
    assert shard.follow().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    shard.timer.advance(3 * SESSION_MS)
    assert list(shard.share_group().members) == ["m1"]
    assert shard.gave_up == 0
    shard.log.fail_with = None
    shard.timer.advance(SESSION_MS)
    assert shard.share_group().is_empty
    shard.check()


def test_a_restart_times_members_anew(shard: ShareHarness) -> None:
    shard.enter()
    shard.settle_members()
    shard.restart()
    shard.check()
    assert shard.follow().error is ErrorCode.NONE
    shard.timer.advance(SESSION_MS + 10)
    assert shard.share_group().is_empty


def test_settings_of_the_group_hold_with_the_next_heartbeat(shard: ShareHarness) -> None:
    shard.enter()
    shard.group_settings = shard.group_settings._replace(
        session_timeout_ms=50_000, heartbeat_interval_ms=7_000
    )
    answer = shard.follow()
    assert not answer.is_parked
    assert answer.response.heartbeat_interval_ms == 7_000
    shard.timer.advance(SESSION_MS + 10)
    assert not shard.share_group().is_empty
    shard.timer.advance(5_000)
    assert shard.share_group().is_empty


# -- the log --


def test_nothing_is_answered_before_it_is_committed(shard: ShareHarness) -> None:
    shard.log.hold = True
    shard.persister.hold = True
    first = shard.enter()
    assert first.is_parked
    # Nothing new, but the group is not yet what the answer would say it is.
    second = shard.beat("m1", 1)
    assert second.is_parked
    assert not shard.persister.calls
    shard.log.commit_held()
    assert (first.epoch, second.epoch) == (1, 1)


def test_a_refused_change_gives_the_shard_up(shard: ShareHarness) -> None:
    shard.log.hold = True
    reply = shard.enter()
    shard.log.fail_held(ErrorCode.KAFKA_STORAGE_ERROR)
    assert reply.error is ErrorCode.NOT_COORDINATOR
    assert shard.gave_up == 1
    assert not shard.persister.calls


# -- other protocols --


def test_classic_members_do_not_join_a_share_group(shard: ShareHarness) -> None:
    shard.enter()
    assert shard.join().error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert isinstance(shard.shard.groups["g"], ShareGroup)


def test_offsets_of_a_share_group_do_not_exist(shard: ShareHarness) -> None:
    shard.enter()
    group = shard.share_group()
    for transactional in (False, True):
        code = group.validate_offset_commit(
            "m1", None, 1, transactional=transactional, api_version=9
        )
        assert code is ErrorCode.GROUP_ID_NOT_FOUND
    assert group.validate_offset_fetch(None, -1) is ErrorCode.NONE
    answers: list[ErrorCode] = []
    shard.offsets.delete("g", [("foo", 0)], lambda code, codes: answers.append(code))
    assert answers == [ErrorCode.GROUP_ID_NOT_FOUND]
    shard.exit()
    assert shard.offsets.expire("g") == 0
    assert "g" in shard.shard.groups
