"""Offsets of share groups altered, deleted and looked at; groups deleted."""

import pytest

from broker.coordinator.persister import ShareSummary
from broker.groups.classic.classic_group import create_classic_group
from protocol.error_codes import ErrorCode
from tests.fakes.broker.offsets_partition import topic_image
from tests.harness.share_groups import BAR, FOO, ShareHarness

FAILED = ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.fixture
def shard() -> ShareHarness:
    """A group that has worked on foo and has no members."""
    shard = ShareHarness()
    shard.enter()
    shard.settle_members()
    shard.exit()
    return shard


# -- alter --


def test_offsets_are_altered(shard: ShareHarness) -> None:
    answers = shard.alter({FOO: {0: 7, 3: 9}, BAR: {1: 5}})
    assert answers == [
        (
            ErrorCode.NONE,
            {FOO: {0: ErrorCode.NONE, 3: ErrorCode.NONE}, BAR: {1: ErrorCode.NONE}},
        )
    ]
    assert shard.states() == {(FOO, 0): 7, (FOO, 1): -1, (FOO, 2): -1, (FOO, 3): 9, (BAR, 1): 5}
    assert shard.initialized() == {FOO: {0, 1, 2, 3}, BAR: {1}}
    shard.check()


def test_a_group_is_created() -> None:
    shard = ShareHarness()
    assert shard.alter({}) == [(ErrorCode.NONE, {})]
    assert not shard.shard.groups
    shard.alter({FOO: {0: 7}})
    shard.restart()
    assert (shard.share_group().state_name, shard.initialized()) == ("Empty", {FOO: {0}})
    shard.check()
    shard.enter()
    shard.settle_members()
    assert shard.owned("m1") == {"foo": [0, 1, 2, 3]}
    # What was altered was not begun anew.
    assert shard.states() == {(FOO, 0): 7, (FOO, 1): -1, (FOO, 2): -1, (FOO, 3): -1}


def test_what_could_not_be_altered_is_told(shard: ShareHarness) -> None:
    shard.persister.fail_with = {1: FAILED}
    answers = shard.alter({FOO: {0: 7, 1: 8}})
    assert answers == [(ErrorCode.NONE, {FOO: {0: ErrorCode.NONE, 1: FAILED}})]
    assert not shard.share_group().kept.initializing
    shard.check()


def test_groups_with_members_or_of_another_kind_are_left_alone(shard: ShareHarness) -> None:
    shard.enter()
    assert shard.alter({FOO: {0: 7}}) == [ErrorCode.NON_EMPTY_GROUP]
    assert shard.delete_offsets(FOO) == [ErrorCode.NON_EMPTY_GROUP]
    assert shard.delete_state() == [ErrorCode.NON_EMPTY_GROUP]
    create_classic_group(shard.shard, "classic")
    assert shard.alter({FOO: {0: 7}}, "classic") == [ErrorCode.GROUP_ID_NOT_FOUND]
    assert shard.delete_offsets(FOO, group="classic") == [ErrorCode.GROUP_ID_NOT_FOUND]
    assert shard.delete_offsets(FOO, group="nobody") == [ErrorCode.GROUP_ID_NOT_FOUND]


def test_nobody_joins_meanwhile(shard: ShareHarness) -> None:
    shard.persister.hold = True
    answers = shard.alter({FOO: {0: 7}})
    assert shard.enter().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert shard.alter({FOO: {0: 7}}) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert shard.delete_state() == [ErrorCode.NON_EMPTY_GROUP]
    shard.persister.hold = False
    shard.persister.release()
    assert len(answers) == 1
    assert shard.enter().assignment == {"foo": [0, 1, 2, 3]}


# -- delete --


def test_offsets_are_deleted(shard: ShareHarness) -> None:
    shard.alter({BAR: {0: 1}})
    answers = shard.delete_offsets(FOO)
    assert answers == [(ErrorCode.NONE, {FOO: ErrorCode.NONE})]
    assert shard.states() == {(BAR, 0): 1}
    assert shard.initialized() == {BAR: {0}}
    assert not shard.share_group().kept.deleting
    shard.check()


def test_where_the_group_stands_nowhere_nothing_is_deleted(shard: ShareHarness) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert shard.delete_offsets(BAR) == [(ErrorCode.NONE, {BAR: unknown})]
    assert shard.delete_offsets(BAR, FOO) == [(ErrorCode.NONE, {BAR: unknown, FOO: ErrorCode.NONE})]


def test_a_deletion_that_failed_is_tried_again(shard: ShareHarness) -> None:
    shard.persister.fail_with = {2: FAILED}
    assert shard.delete_offsets(FOO) == [(ErrorCode.NONE, {FOO: FAILED})]
    assert shard.states() == {(FOO, 2): -1}
    assert shard.initialized() == {}
    shard.restart()
    shard.check()
    shard.persister.fail_with = {}
    assert shard.delete_offsets(FOO) == [(ErrorCode.NONE, {FOO: ErrorCode.NONE})]
    assert shard.states() == {}
    shard.check()


def test_a_member_begins_anew_after_a_deletion_that_failed(shard: ShareHarness) -> None:
    shard.persister.fail_with = {2: FAILED}
    shard.delete_offsets(FOO)
    shard.persister.fail_with = {}
    shard.enter()
    shard.settle_members()
    assert shard.owned("m1") == {"foo": [0, 1, 2, 3]}
    assert sorted(shard.states()) == [(FOO, partition) for partition in range(4)]
    shard.check()


def test_all_state_of_a_group_is_deleted(shard: ShareHarness) -> None:
    shard.alter({BAR: {1: 3}})
    assert shard.delete_state() == [ErrorCode.NONE]
    assert shard.states() == {}
    answers: list[ErrorCode] = []
    shard.offsets.delete_group("g", answers.append)
    assert answers == [ErrorCode.NONE]
    assert not shard.shard.groups
    assert not shard.reloaded().groups


def test_a_group_without_state_is_deleted() -> None:
    shard = ShareHarness(None, topic_image("bar", 2, 1))
    shard.enter("m1", "foo")
    shard.exit()
    assert shard.delete_state() == [ErrorCode.NONE]


def test_a_group_whose_deletion_failed_is_there_still(shard: ShareHarness) -> None:
    shard.persister.fail_with = {0: FAILED}
    assert shard.delete_state() == [FAILED]
    shard.restart()
    assert shard.share_group().kept.deleting == {FOO: "foo"}
    shard.persister.fail_with = {}
    assert shard.delete_state() == [ErrorCode.NONE]
    assert shard.states() == {}


def test_a_group_is_deleted_also_where_a_topic_is_not_there(shard: ShareHarness) -> None:
    shard.persister.fail_with = dict.fromkeys(range(4), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert shard.delete_state() == [ErrorCode.NONE]


def test_a_log_that_does_not_answer(shard: ShareHarness) -> None:
    shard.log.hold = True
    answers = [shard.alter({FOO: {0: 7}})]
    shard.timer.advance(shard.settings.offsets_commit_timeout_ms + 1)
    answers.append(shard.delete_offsets(FOO))
    shard.timer.advance(shard.settings.offsets_commit_timeout_ms + 1)
    assert answers == [[(ErrorCode.COORDINATOR_NOT_AVAILABLE, {})]] * 2
    assert shard.states()[FOO, 0] == -1
    shard.log.commit_held()
    shard.check()


# -- look --


def test_where_a_group_stands(shard: ShareHarness) -> None:
    shard.alter({FOO: {0: 7}})
    found: list[object] = []
    shard.shares.administration.summaries("g", None, found.append)
    shard.shares.administration.summaries("g", {FOO: [0], BAR: [1]}, found.append)
    shard.shares.administration.summaries("nobody", None, found.append)
    shard.persister.fail_with = {0: FAILED}
    shard.shares.administration.summaries("g", {FOO: [0]}, found.append)
    assert found == [
        {
            FOO: {
                0: ShareSummary(shard.share_group().group_epoch, -1, 7, 0),
                **{p: ShareSummary(1, -1, -1, 0) for p in (1, 2, 3)},
            }
        },
        {
            FOO: {0: ShareSummary(shard.share_group().group_epoch, -1, 7, 0)},
            BAR: {1: ShareSummary(0, -1, -1, 0)},
        },
        {},
        {FOO: {0: None}},
    ]


def test_who_remembers_state_is_told_that_it_was_altered(shard: ShareHarness) -> None:
    shard.alter({FOO: {0: 7}})
    assert shard.altered == ["g"]
    shard.delete_offsets(FOO)
    shard.alter({BAR: {0: 7}})
    shard.delete_state()
    assert shard.altered == ["g"] * 4


def test_state_that_could_not_be_deleted_is_deleted_after_a_failed_alteration() -> None:
    shard = ShareHarness()
    shard.alter({FOO: {0: 0}})
    shard.persister.fail_with = {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert shard.delete_state() == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    shard.alter({FOO: {0: 0}})
    shard.persister.fail_with = {}
    assert shard.delete_state() == [ErrorCode.NONE]
    assert not shard.states()


def test_state_that_could_not_be_deleted_is_deleted_after_an_alteration_of_others() -> None:
    """One partition initialized anew says nothing of the others of its topic."""
    shard = ShareHarness()
    shard.alter({FOO: {0: 0, 1: 0}})
    shard.persister.fail_with = {1: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert shard.delete_state() == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    shard.persister.fail_with = {}
    shard.alter({FOO: {0: 0}})
    shard.restart()
    assert shard.delete_state() == [ErrorCode.NONE]
    assert not shard.states()
