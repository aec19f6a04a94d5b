"""Consumer groups, case by case as Kafka's GroupMetadataManagerTest has them."""

import pytest

from broker.groups.classic.classic_group import ClassicGroup
from broker.groups.consumer.member import MemberState
from protocol.error_codes import ErrorCode
from tests.fakes.broker.offsets_partition import topic_image
from tests.harness.consumer_groups import (
    BAR,
    FOO,
    HEARTBEAT_MS,
    REBALANCE_MS,
    SESSION_MS,
    ConsumerHarness,
)

STABLE = MemberState.STABLE
UNREVOKED = MemberState.UNREVOKED_PARTITIONS
UNRELEASED = MemberState.UNRELEASED_PARTITIONS
ALL = [0, 1, 2, 3, 4, 5]


@pytest.fixture
def h() -> ConsumerHarness:
    return ConsumerHarness()


def two_members(h: ConsumerHarness, **options: object) -> None:
    """m1 and m2 share foo, and everybody is where the target wants them."""
    h.enter("m1", **options)
    h.enter("m2", **options)
    h.settle_members()
    assert h.consumer_group().state_name == "Stable"


# -- joining --


def test_first_member_gets_everything(h: ConsumerHarness) -> None:
    reply = h.enter("m1", topics=["foo", "bar"])
    assert (reply.epoch, reply.member_id) == (1, "m1")
    assert reply.assignment == {"foo": ALL, "bar": [0, 1, 2]}
    assert not reply.is_parked
    assert reply.response.heartbeat_interval_ms == HEARTBEAT_MS
    group = h.consumer_group()
    assert (group.group_epoch, group.assignment_epoch, group.state_name) == (1, 1, "Stable")
    h.check()


def test_group_without_members_is_not_found(h: ConsumerHarness) -> None:
    reply = h.beat("m1", 7)
    assert reply.error is ErrorCode.GROUP_ID_NOT_FOUND
    assert h.exit("m1").error is ErrorCode.GROUP_ID_NOT_FOUND
    assert not h.shard.groups


def test_unknown_member_is_told_so(h: ConsumerHarness) -> None:
    h.enter("m1")
    assert h.beat("m2", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert h.exit("m2").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_member_id_is_made_for_version_0(h: ConsumerHarness) -> None:
    reply = h.enter("", version=0)
    assert len(reply.member_id) == 22
    assert h.beat(reply.member_id, 1, version=0).epoch == 1
    assert h.enter("", version=1).error is ErrorCode.INVALID_REQUEST


def test_member_of_no_topics_is_a_member(h: ConsumerHarness) -> None:
    assert h.enter(topics=[]).assignment == {}
    assert h.consumer_group().state_name == "Stable"


def test_topics_that_do_not_exist_are_left_out(h: ConsumerHarness) -> None:
    assert h.enter(topics=["bar", "nowhere"]).assignment == {"bar": [0, 1, 2]}
    h.check()


def test_next_heartbeat_says_nothing_new_and_writes_nothing(h: ConsumerHarness) -> None:
    h.enter()
    batches = len(h.log.batches[0])
    reply = h.beat("m1", 1)
    assert (reply.epoch, reply.assignment) == (1, None)
    assert h.beat("m1", 1, owned={"foo": ALL}).assignment is None
    assert len(h.log.batches[0]) == batches


def test_full_request_is_answered_in_full(h: ConsumerHarness) -> None:
    h.enter()
    batches = len(h.log.batches[0])
    reply = h.beat("m1", 1, topics=["foo"], rebalance_ms=REBALANCE_MS, owned={"foo": ALL})
    assert reply.assignment == {"foo": ALL}
    assert len(h.log.batches[0]) == batches


def test_second_member_waits_for_what_the_first_gives_back(h: ConsumerHarness) -> None:
    h.enter("m1")
    second = h.enter("m2")
    assert (second.epoch, second.assignment) == (2, {})
    assert h.state("m2") is UNRELEASED
    assert h.consumer_group().state_name == "Reconciling"
    kept = h.target("m1")["foo"]
    told = h.beat("m1", 1)
    assert (told.epoch, told.assignment) == (1, {"foo": kept})
    assert h.state("m1") is UNREVOKED
    # It has not given anything back yet.
    assert h.beat("m1", 1, owned={"foo": ALL}).epoch == 1
    assert h.beat("m2", 2).assignment is None
    given = h.beat("m1", 1, owned={"foo": kept})
    assert (given.epoch, given.assignment) == (2, None)
    assert h.beat("m2", 2).assignment == {"foo": h.target("m2")["foo"]}
    assert h.consumer_group().state_name == "Stable"
    h.check()


def test_group_is_full() -> None:
    h = ConsumerHarness(group_consumer_max_size=1)
    h.enter("m1")
    refused = h.enter("m2")
    assert refused.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert "maximum capacity of 1 members" in refused.message
    assert h.enter("m1").epoch == 1
    assert h.beat("m1", 1).epoch == 1


def test_preferred_assignor_is_that_of_most(h: ConsumerHarness) -> None:
    h.enter("m1", assignor="range", topics=["foo", "bar"])
    h.enter("m2", assignor="range", topics=["foo", "bar"])
    assert h.target("m1") == {"foo": [0, 1, 2], "bar": [0, 1]}
    h.enter("m3", assignor="uniform", topics=["foo", "bar"])
    assert h.consumer_group().preferred_assignor("uniform") == "range"
    h.check()


# -- reconciliation --


def test_three_members_come_one_by_one(h: ConsumerHarness) -> None:
    """No partition has two owners at any time, and in the end everybody has a third."""
    for number, member_id in enumerate(("m1", "m2", "m3"), 1):
        h.enter(member_id, topics=["foo", "bar"])
        h.check()
        h.settle_members()
        h.check()
        sizes = [
            sum(map(len, member.assigned.values()))
            for member in h.consumer_group().members.values()
        ]
        assert sum(sizes) == 9
        assert max(sizes) - min(sizes) <= 1, number
    assert {m.member_epoch for m in h.consumer_group().members.values()} == {3}


def test_lost_answer_is_repeated(h: ConsumerHarness) -> None:
    """The epoch before is taken from a member that has no more than it shall have."""
    h.enter("m1")
    h.enter("m2")
    kept = h.target("m1")["foo"]
    h.beat("m1", 1)
    assert h.beat("m1", 1, owned={"foo": kept}).epoch == 2
    assert h.beat("m1", 1, owned={"foo": kept}).epoch == 2
    assert h.beat("m1", 1, owned={}).epoch == 2
    assert h.beat("m1", 1).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert h.beat("m1", 1, owned={"foo": ALL}).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert h.beat("m1", 1, owned={"bar": [0]}).error is ErrorCode.FENCED_MEMBER_EPOCH


def test_wrong_epochs_are_fenced(h: ConsumerHarness) -> None:
    two_members(h)
    epoch = h.member("m1").member_epoch
    for wrong in (epoch + 1, epoch - 2 or 99):
        refused = h.beat("m1", wrong)
        assert refused.error is ErrorCode.FENCED_MEMBER_EPOCH
        assert "must abandon all its partitions and rejoin" in refused.message


def test_member_that_was_fenced_joins_again_under_its_id(h: ConsumerHarness) -> None:
    """Whatever epoch the group knows it in; what it says it owns counts."""
    h.enter("m1")
    again = h.enter("m1")
    assert (again.epoch, again.assignment) == (1, {"foo": ALL})
    h.enter("m2")
    h.settle_members()
    part = h.target("m1")["foo"]
    assert h.beat("m1", 7).error is ErrorCode.FENCED_MEMBER_EPOCH
    again = h.enter("m1")
    assert (again.epoch, again.assignment) == (2, {"foo": list(part)})
    h.check()


def test_member_that_joins_again_has_given_back_what_it_does_not_name(h: ConsumerHarness) -> None:
    h.enter("m1")
    h.enter("m2")
    h.beat("m1", 1, owned={"foo": ALL})
    again = h.enter("m1")
    assert again.epoch == 2
    h.settle_members()
    assert sorted((*h.owned("m1")["foo"], *h.owned("m2")["foo"])) == ALL
    h.check()


def test_subscription_is_changed(h: ConsumerHarness) -> None:
    h.enter("m1", topics=["foo"])
    changed = h.beat("m1", 1, topics=["foo", "bar"])
    assert (changed.epoch, changed.assignment) == (2, {"foo": ALL, "bar": [0, 1, 2]})
    assert h.consumer_group().group_epoch == 2
    fewer = h.beat("m1", 2, topics=["bar"])
    assert (fewer.epoch, fewer.assignment) == (2, {"bar": [0, 1, 2]})
    assert h.state("m1") is UNREVOKED
    assert h.beat("m1", 2, owned={"bar": [0, 1, 2]}).epoch == 3
    h.check()


def test_topics_are_extended_created_and_deleted(h: ConsumerHarness) -> None:
    h.enter("m1", topics=["foo", "foobar"])
    h.set_topics(topic_image("foo", 1, 8), topic_image("bar", 2, 3))
    assert h.beat("m1", 1).assignment == {"foo": list(range(8))}
    h.set_topics(topic_image("foo", 1, 8), topic_image("foobar", 3, 1))
    assert h.beat("m1", 2).assignment == {"foo": list(range(8)), "foobar": [0]}
    h.set_topics(topic_image("foobar", 3, 1))
    assert h.beat("m1", 3).assignment == {"foobar": [0]}
    assert h.beat("m1", 3, owned={"foobar": [0]}).epoch == 4
    h.check()


def test_topics_of_others_change_nothing(h: ConsumerHarness) -> None:
    h.enter("m1", topics=["foo"])
    h.set_topics(topic_image("foo", 1, 6), topic_image("bar", 2, 9))
    assert h.beat("m1", 1).assignment is None
    assert h.consumer_group().group_epoch == 1


def test_topics_that_changed_while_nobody_coordinated_are_noticed(h: ConsumerHarness) -> None:
    h.enter("m1")
    h.controller.image = h.controller._image_of([topic_image("foo", 1, 7)])
    h.restart()
    reply = h.beat("m1", 1)
    assert (reply.epoch, reply.assignment) == (2, {"foo": [*ALL, 6]})
    h.check()


def test_unknown_state_of_a_newer_broker_is_fenced(h: ConsumerHarness) -> None:
    h.enter("m1")
    group = h.consumer_group()
    group.update_member(h.member("m1")._replace(state=MemberState.UNKNOWN))
    refused = h.beat("m1", 1)
    assert refused.error is ErrorCode.FENCED_MEMBER_EPOCH
    assert h.beat("m1", 1, owned={}).epoch == 1
    assert h.state("m1") is STABLE


# -- leaving --


def test_member_leaves(h: ConsumerHarness) -> None:
    two_members(h)
    epoch = h.consumer_group().group_epoch
    left = h.exit("m2")
    assert (left.error, left.epoch, left.member_id) == (ErrorCode.NONE, -1, "m2")
    assert h.consumer_group().group_epoch == epoch + 1
    assert h.consumer_group().state_name == "Assigning"
    assert h.beat("m1", epoch).assignment == {"foo": ALL}
    h.check()


def test_last_member_leaves(h: ConsumerHarness) -> None:
    h.enter("m1")
    h.exit("m1")
    group = h.consumer_group()
    assert (group.state_name, group.is_empty, group.group_epoch) == ("Empty", True, 2)
    assert not h.timer.pending
    h.check()
    assert h.enter("m1").epoch == 3


# -- static members --


def static_group(h: ConsumerHarness) -> None:
    h.enter("m1", instance="i1")
    h.enter("m2", instance="i2")
    h.settle_members()


def test_static_member_comes_back_to_what_it_had(h: ConsumerHarness) -> None:
    static_group(h)
    had = h.owned("m2")
    epoch = h.consumer_group().group_epoch
    left = h.beat("m2", -2, instance="i2")
    assert (left.epoch, left.member_id) == (-2, "m2")
    assert h.consumer_group().group_epoch == epoch
    assert h.member("m2").member_epoch == -2
    h.check()
    # Nobody else gets its partitions meanwhile.
    assert h.beat("m1", epoch, instance="i1").assignment is None
    back = h.enter("m3", instance="i2")
    assert (back.epoch, back.assignment) == (epoch, had)
    assert "m2" not in h.consumer_group().members
    assert h.consumer_group().static_members == {"i1": "m1", "i2": "m3"}
    h.check()


def test_static_member_comes_back_with_other_topics(h: ConsumerHarness) -> None:
    static_group(h)
    epoch = h.consumer_group().group_epoch
    h.beat("m2", -2, instance="i2")
    back = h.enter("m3", instance="i2", topics=["foo", "bar"])
    assert back.epoch == epoch + 1
    h.settle_members()
    assert h.owned("m3")["bar"] == [0, 1, 2]
    h.check()


def test_static_member_that_stays_away_is_removed(h: ConsumerHarness) -> None:
    static_group(h)
    h.beat("m2", -2, instance="i2")
    h.timer.advance(SESSION_MS - 1)
    h.beat("m1", 2, instance="i1")
    h.timer.advance(1)
    assert set(h.consumer_group().members) == {"m1"}
    assert h.follow("m1", instance="i1").assignment == {"foo": ALL}
    h.check()


def test_instance_id_in_use_is_not_released(h: ConsumerHarness) -> None:
    static_group(h)
    refused = h.enter("m3", instance="i2")
    assert refused.error is ErrorCode.UNRELEASED_INSTANCE_ID
    assert "owned by m2 member" in refused.message
    assert set(h.consumer_group().members) == {"m1", "m2"}


def test_static_member_that_missed_the_answer_to_its_join_joins_again(h: ConsumerHarness) -> None:
    """Perhaps the broker was killed; UNRELEASED_INSTANCE_ID would end the client."""
    first = h.enter("m1", instance="i1")
    assert h.enter("m1", instance="i1").epoch == first.epoch
    h.restart()
    again = h.enter("m1", instance="i1")
    assert (again.epoch, again.assignment) == (first.epoch, {"foo": ALL})
    waiting = ConsumerHarness(group_consumer_assignment_interval_ms=1_000)
    assert waiting.enter("m1", instance="i1").is_parked
    waiting.restart()
    parked = waiting.enter("m1", instance="i1")
    waiting.timer.advance(1_000)
    assert parked.assignment == {"foo": ALL}
    waiting.check()
    # One that has left in between takes its own place.
    h.beat("m1", -2, instance="i1")
    assert h.enter("m1", instance="i1").assignment == {"foo": ALL}
    # One that has gone on for longer has other ways to say what it needs.
    h.enter("m2", instance="i2")
    h.settle_members()
    assert h.enter("m1", instance="i1").error is ErrorCode.UNRELEASED_INSTANCE_ID
    h.check()


def test_instance_id_is_known_under_one_member_id(h: ConsumerHarness) -> None:
    static_group(h)
    assert h.beat("m3", 2, instance="i2").error is ErrorCode.FENCED_INSTANCE_ID
    assert h.beat("m3", -1, instance="i2").error is ErrorCode.FENCED_INSTANCE_ID
    assert h.beat("m3", -2, instance="i2").error is ErrorCode.FENCED_INSTANCE_ID
    assert h.beat("m2", 2, instance="i9").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert h.beat("m2", -1, instance="i9").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert h.beat("m2", 9, instance="i2").error is ErrorCode.FENCED_MEMBER_EPOCH


def test_static_member_leaves_for_good(h: ConsumerHarness) -> None:
    static_group(h)
    epoch = h.consumer_group().group_epoch
    assert h.exit("m2", instance="i2").epoch == -1
    assert h.consumer_group().group_epoch == epoch + 1
    assert h.consumer_group().static_members == {"i1": "m1"}
    h.check()


# -- time --


def test_session_is_kept_by_heartbeats(h: ConsumerHarness) -> None:
    h.enter()
    for _ in range(3):
        h.timer.advance(SESSION_MS - 1)
        assert h.beat("m1", 1).epoch == 1
    h.timer.advance(SESSION_MS)
    assert h.consumer_group().is_empty
    assert h.beat("m1", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert h.shard.stats.expired_members == 1
    h.check()


def test_session_runs_from_loading(h: ConsumerHarness) -> None:
    h.enter()
    h.restart()
    h.timer.advance(SESSION_MS - 1)
    assert not h.consumer_group().is_empty
    h.timer.advance(1)
    assert h.consumer_group().is_empty


def test_partitions_are_given_back_in_time_or_else(h: ConsumerHarness) -> None:
    h.enter("m1", rebalance_ms=10_000)
    h.enter("m2")
    h.beat("m1", 1)
    assert h.state("m1") is UNREVOKED
    h.timer.advance(9_999)
    assert "m1" in h.consumer_group().members
    h.timer.advance(1)
    assert set(h.consumer_group().members) == {"m2"}
    assert h.follow("m2").assignment == {"foo": ALL}
    h.check()


def test_time_to_give_back_ends_with_giving_back(h: ConsumerHarness) -> None:
    h.enter("m1", rebalance_ms=10_000)
    h.enter("m2")
    h.beat("m1", 1)
    h.beat("m1", 1, owned={"foo": h.target("m1")["foo"]})
    h.timer.advance(20_000)
    assert set(h.consumer_group().members) == {"m1", "m2"}


def test_time_to_give_back_runs_from_loading(h: ConsumerHarness) -> None:
    h.enter("m1", rebalance_ms=10_000)
    h.enter("m2")
    h.beat("m1", 1)
    h.restart()
    h.timer.advance(10_000)
    assert set(h.consumer_group().members) == {"m2"}
    h.check()


# -- patterns --


def test_pattern_is_resolved_off_the_heartbeat(h: ConsumerHarness) -> None:
    h.offload.hold = True
    first = h.enter("m1", regex="foo.*")
    assert (first.epoch, first.assignment) == (1, {})
    assert h.consumer_group().group_epoch == 1
    h.offload.run_all()
    assert h.consumer_group().group_epoch == 2
    assert h.beat("m1", 1).assignment == {"foo": ALL}
    h.check()


def test_second_member_of_a_pattern_needs_no_resolving(h: ConsumerHarness) -> None:
    h.enter("m1", regex="foo.*")
    h.beat("m1", 1)
    h.offload.hold = True
    h.enter("m2", regex="foo.*")
    assert not h.offload.waiting
    h.settle_members()
    assert len(h.owned("m2")["foo"]) == 3
    h.check()


def test_invalid_pattern_changes_nothing(h: ConsumerHarness) -> None:
    refused = h.enter("m1", regex="[")
    assert refused.error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "SubscribedTopicRegex `[`" in refused.message
    assert not h.shard.groups
    h.enter("m1")
    assert h.beat("m1", 1, regex="(").error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert h.beat("m1", 1).assignment is None
    h.check()


def test_new_topics_are_found_after_ten_seconds(h: ConsumerHarness) -> None:
    h.enter("m1", regex="foo.*")
    h.beat("m1", 1)
    h.set_topics(topic_image("foo", 1, 6), topic_image("foobar", 3, 1))
    h.beat("m1", 2)
    assert h.consumer_group().group_epoch == 2
    h.timer.advance(10_001)
    assert h.beat("m1", 2).assignment == {"foo": ALL, "foobar": [0]}
    h.check()


def test_patterns_are_resolved_again_after_the_interval(h: ConsumerHarness) -> None:
    h.enter("m1", regex="foo.*")
    h.beat("m1", 1)
    h.offload.hold = True
    for _ in range(15):
        h.timer.advance(40_000)
        h.beat("m1", 2)
    assert not h.offload.waiting
    h.timer.advance(1)
    h.beat("m1", 2)
    assert len(h.offload.waiting) == 1
    h.beat("m1", 2)
    assert len(h.offload.waiting) == 1


def test_pattern_goes_with_its_last_member(h: ConsumerHarness) -> None:
    h.enter("m1", regex="foo.*")
    h.enter("m2", regex="foo.*")
    h.exit("m1")
    assert set(h.consumer_group().resolved) == {"foo.*"}
    h.exit("m2")
    assert not h.consumer_group().resolved
    assert not h.consumer_group().is_subscribed_to("foo")
    h.check()


def test_pattern_is_exchanged(h: ConsumerHarness) -> None:
    h.enter("m1", regex="foo.*")
    h.settle_members()
    h.timer.advance(10_001)
    epoch = h.member("m1").member_epoch
    told = h.beat("m1", epoch, regex="ba.")
    assert told.assignment == {}
    assert set(h.consumer_group().resolved) == {"ba."}
    h.settle_members()
    assert h.owned("m1") == {"bar": [0, 1, 2]}
    h.check()


def test_name_and_pattern_together(h: ConsumerHarness) -> None:
    h.enter("m1", topics=["bar"], regex="foo.*")
    h.settle_members()
    assert h.owned("m1") == {"foo": ALL, "bar": [0, 1, 2]}
    h.check()


# -- the log --


def test_answer_comes_when_it_is_committed(h: ConsumerHarness) -> None:
    h.log.hold = True
    reply = h.enter()
    again = h.beat("m1", 1)
    assert reply.is_parked
    assert again.is_parked, "a quiet heartbeat must not tell what is not committed"
    h.log.commit_held()
    assert (reply.epoch, again.epoch) == (1, 1)


def test_refused_write_gives_the_shard_up(h: ConsumerHarness) -> None:
    h.log.fail_with = ErrorCode.KAFKA_STORAGE_ERROR
    reply = h.enter()
    assert reply.error is ErrorCode.NOT_COORDINATOR
    assert h.gave_up == 1


def test_while_the_log_lacks_replicas_members_stay_and_none_comes_or_goes(
    h: ConsumerHarness,
) -> None:
    """The shard is loaded again for none of it: its other groups are served meanwhile."""
    h.enter("m1")
    h.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert h.enter("m2").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert h.enter("m1", group="other").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert h.exit("m1").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert h.beat("m1", 1, topics=["bar"]).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert h.beat("m1", 1).epoch == 1
    # As after an error, when clients say all of it again.
    full = h.beat("m1", 1, topics=["foo"], owned={"foo": range(6)}, rebalance_ms=REBALANCE_MS)
    assert full.epoch == 1
    assert list(h.consumer_group().members) == ["m1"]
    assert list(h.shard.groups) == ["g"]
    assert h.gave_up == 0
    h.log.fail_with = None
    assert h.enter("m2").epoch == 2
    h.check()


def test_changed_topics_wait_while_the_log_lacks_replicas(h: ConsumerHarness) -> None:
    """The member is told to come again, and lives meanwhile."""
    h.enter("m1")
    h.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    h.set_topics(topic_image("foo", 1, 8), topic_image("bar", 2, 3))
    h.timer.advance(SESSION_MS - 1)
    assert h.beat("m1", 1).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert h.gave_up == 0
    h.log.fail_with = None
    h.timer.advance(SESSION_MS - 1)
    h.settle_members()
    assert h.owned("m1") == {"foo": [*range(8)]}
    h.check()


def test_nobody_is_fenced_while_the_log_lacks_replicas(h: ConsumerHarness) -> None:
    """Its heartbeats may be refused, so it has a whole session when there are enough again."""
    h.enter("m1")
    h.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    h.timer.advance(3 * SESSION_MS)
    assert list(h.consumer_group().members) == ["m1"]
    assert h.gave_up == 0
    h.log.fail_with = None
    h.timer.advance(SESSION_MS - 1)
    assert list(h.consumer_group().members) == ["m1"]
    h.timer.advance(1)
    assert not h.consumer_group().members
    h.check()


def test_who_has_to_revoke_has_time_again_while_the_log_lacks_replicas(
    h: ConsumerHarness,
) -> None:
    h.enter("m1")
    h.enter("m2")
    h.beat("m1", 1)
    assert h.state("m1") is MemberState.UNREVOKED_PARTITIONS
    h.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    h.timer.advance(REBALANCE_MS)
    assert sorted(h.consumer_group().members) == ["m1", "m2"]
    h.log.fail_with = None
    h.beat("m2", h.member("m2").member_epoch)
    h.timer.advance(REBALANCE_MS)
    assert list(h.consumer_group().members) == ["m2"]
    assert h.gave_up == 0


def test_slow_write_is_not_given_up(h: ConsumerHarness) -> None:
    h.log.hold = True
    reply = h.enter()
    h.timer.advance(h.settings.offsets_commit_timeout_ms)
    assert reply.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    h.log.commit_held()
    assert h.gave_up == 0
    assert h.beat("m1", 1).epoch == 1


def test_restart_in_the_middle_of_a_reconciliation(h: ConsumerHarness) -> None:
    h.enter("m1")
    h.enter("m2")
    h.beat("m1", 1)
    h.restart()
    assert (h.state("m1"), h.state("m2")) == (UNREVOKED, UNRELEASED)
    h.settle_members()
    assert sorted(h.owned("m1")["foo"] + h.owned("m2")["foo"]) == ALL
    h.check()


def test_next_coordinator_repeats_what_was_not_heard(h: ConsumerHarness) -> None:
    """To a member that says everything again; to one that says nothing no broker says anything."""
    h.enter("m1")
    h.enter("m2")
    kept = {"foo": h.target("m1")["foo"]}
    # The answer gets lost.
    h.beat("m1", 1)
    h.restart()
    assert h.beat("m1", 1).assignment is None
    told = h.beat("m1", 1, topics=["foo"], rebalance_ms=REBALANCE_MS, owned={"foo": ALL})
    assert (told.epoch, told.assignment) == (1, kept)
    assert h.state("m1") is UNREVOKED
    assert h.beat("m1", 1, owned=kept).epoch == 2
    h.check()


def test_close_answers_everybody() -> None:
    h = ConsumerHarness(group_consumer_assignment_interval_ms=1_000)
    parked = h.enter()
    h.consumers.close()
    assert parked.error is ErrorCode.NOT_COORDINATOR
    assert not h.timer.pending


# -- offsets --


def test_commits_and_fetches_are_made_in_the_present_epoch(h: ConsumerHarness) -> None:
    h.enter("m1")
    at = {("foo", 0): 5}
    assert h.commit(at, member_id="m1", generation=1) == [ErrorCode.NONE]
    assert h.commit(at, member_id="m1", generation=0) == [ErrorCode.STALE_MEMBER_EPOCH]
    assert h.commit(at, member_id="m1", generation=2) == [ErrorCode.STALE_MEMBER_EPOCH]
    assert h.commit(at, member_id="m9", generation=1) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert h.commit(at) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert h.commit(at, member_id="m1", generation=1, version=8) == [ErrorCode.UNSUPPORTED_VERSION]
    group = h.consumer_group()
    assert group.validate_offset_fetch(None, -1) is ErrorCode.NONE
    assert group.validate_offset_fetch("m1", 1) is ErrorCode.NONE
    assert group.validate_offset_fetch("m1", 7) is ErrorCode.STALE_MEMBER_EPOCH
    assert group.validate_offset_fetch("m9", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert (
        group.validate_offset_commit("", None, -1, transactional=True, api_version=3)
        is ErrorCode.NONE
    )
    h.exit("m1")
    assert h.commit(at) == [ErrorCode.NONE]


def test_group_is_deleted_with_all_it_has(h: ConsumerHarness) -> None:
    h.enter("m1", regex="foo.*")
    h.commit({("foo", 0): 5}, member_id="m1", generation=1)
    codes: list[ErrorCode] = []
    h.offsets.delete_group("g", codes.append)
    h.exit("m1")
    h.offsets.delete_group("g", codes.append)
    assert codes == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.NONE]
    assert not h.shard.groups
    assert not h.reloaded().groups
    assert h.enter("m1").epoch == 1


def test_offsets_of_topics_nobody_reads_expire(h: ConsumerHarness) -> None:
    h.enter("m1", topics=["foo"])
    h.commit({("foo", 0): 5, ("bar", 0): 6}, member_id="m1", generation=1)
    retention_ms = h.settings.offsets_retention_minutes * 60_000
    h.clock.advance(retention_ms)
    h.offsets.expire("g")
    assert h.shard.offsets.topics("g") == [("foo", [0])]
    h.exit("m1")
    h.offsets.expire("g")
    assert not h.shard.groups
    assert not h.reloaded().groups


def test_offsets_of_subscribed_topics_are_not_deleted(h: ConsumerHarness) -> None:
    h.enter("m1", topics=["foo"])
    h.commit({("foo", 0): 5, ("bar", 0): 6}, member_id="m1", generation=1)
    answers: list[tuple[ErrorCode, list[ErrorCode]]] = []
    h.offsets.delete("g", [("foo", 0), ("bar", 0)], lambda *a: answers.append(a))
    assert answers == [(ErrorCode.NONE, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE])]


def test_empty_classic_group_makes_room(h: ConsumerHarness) -> None:
    h.commit({("foo", 0): 5})
    assert h.shard.group("g", ClassicGroup) is not None
    assert h.enter("m1").epoch == 1
    assert h.shard.offsets.get("g", "foo", 0) is not None
    h.check()
    assert h.reloaded().offsets.get("g", "foo", 0) is not None


def test_partition_metadata_of_old_brokers_is_deleted(h: ConsumerHarness) -> None:
    h.enter("m1")
    h.consumer_group().has_partition_metadata_record = True
    h.beat("m1", 1, topics=["foo", "bar"])
    assert not h.consumer_group().has_partition_metadata_record
    h.check()


def test_ids_are_those_of_the_topics() -> None:
    h = ConsumerHarness()
    reply = h.enter(topics=["foo", "bar"])
    assert not reply.is_parked
    assert reply.response.assignment is not None
    assert [t.topic_id for t in reply.response.assignment.topic_partitions] == [FOO, BAR]
