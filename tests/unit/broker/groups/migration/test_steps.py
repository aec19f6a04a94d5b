"""Groups change their protocol while members go on, and are found so in the log."""

import pytest

from broker.groups.classic.classic_group import ClassicGroup
from broker.groups.classic.classic_group_state import ClassicGroupState
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.migration.conversion import PROTOCOLS_SIZE_MAX
from protocol.error_codes import ErrorCode
from protocol.messages.leave_group import MemberIdentity
from protocol.records.record import iterate_records
from tests.harness.migration import (
    MigrationHarness,
    of_topic,
    partitions_of,
    wants,
)

POLICY = "group_consumer_migration_policy"


def assert_in_the_log(h: MigrationHarness) -> None:
    """Another broker finds the same group, and nothing of what it was before."""
    here, there = h.shard.groups["g"], h.reloaded().groups["g"]
    assert type(there) is type(here)
    if isinstance(here, ConsumerGroup):
        assert isinstance(there, ConsumerGroup)
        assert there.members == here.members
        assert there.target == here.target
        assert (there.group_epoch, there.assignment_epoch, there.metadata_hash) == (
            here.group_epoch,
            here.assignment_epoch,
            here.metadata_hash,
        )
    else:
        assert isinstance(here, ClassicGroup)
        assert isinstance(there, ClassicGroup)
        assert there.generation == here.generation
        assert {m.member_id: m.assignment for m in there.members.values()} == {
            m.member_id: m.assignment for m in here.members.values()
        }


def keys_of(batch: bytes) -> list[bytes | None]:
    return [record.key for record in iterate_records(memoryview(batch), max_size=1 << 20)]


# -- upgrade --


def test_a_member_of_the_new_protocol_makes_it_a_consumer_group() -> None:
    """It waits for partitions that the classic members give back when they join again."""
    h = MigrationHarness()
    one, two, generation = h.classic_pair()
    new = h.joined_new("new")
    group = h.modern
    assert group.group_epoch == generation + 1
    assert group.classic_member_count == 2
    assert new.partitions == ()
    # The others go on with what they have until their next heartbeat.
    assert h.commit({("t", 0): 5}, member_id=one, generation=generation) == [ErrorCode.NONE]
    for name in (one, two):
        assert h.heartbeat(name, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    epochs, owned = zip(*(h.rejoin(name) for name in (one, two)), strict=True)
    assert epochs == (group.group_epoch,) * 2
    late = h.beat("new", new.response.member_epoch)
    everything = [*owned[0], *owned[1], *(late.partitions or ())]
    assert sorted(everything) == [0, 1, 2, 3]
    assert late.partitions
    assert group.state_name == "Stable"
    assert h.heartbeat(one, group.group_epoch) is ErrorCode.NONE
    assert_in_the_log(h)


def test_an_upgrade_is_one_batch_and_if_need_be_a_compressed_one() -> None:
    """A crash leaves the one group or the other."""
    h = MigrationHarness()
    h.classic_pair()
    before = len(h.log.batches[0])
    h.joined_new("new")
    plain = h.log.batches[0][before]
    assert len(keys_of(plain)) == 1 + 2 * 3 + 2
    h = MigrationHarness()
    h.classic_pair()
    h.log.size_max = len(plain) - 1
    h.joined_new("new")
    packed = h.log.batches[0][before]
    assert len(packed) < len(plain)
    assert keys_of(packed) == keys_of(plain)
    assert_in_the_log(h)


def test_a_group_too_large_for_a_batch_is_not_upgraded() -> None:
    h = MigrationHarness()
    one, _, generation = h.classic_pair()
    h.log.size_max = 200
    refused = h.beat("new", 0)
    assert refused.error is ErrorCode.GROUP_ID_NOT_FOUND
    assert "do not fit" in refused.response.error_message
    assert h.classic.generation == generation
    assert h.heartbeat(one, generation) is ErrorCode.NONE
    assert_in_the_log(h)


def test_a_group_too_large_for_a_batch_is_not_downgraded() -> None:
    h = MigrationHarness()
    one, two, epoch = mixed_group(h)
    h.log.size_max = 230
    assert h.beat("new", -1).error is ErrorCode.NONE
    assert h.modern.group_epoch == epoch + 1
    assert set(h.modern.members) == {one, two}
    assert_in_the_log(h)


def test_cooperative_members_give_back_one_step_at_a_time() -> None:
    """Nobody loses what it keeps: that is what the assignors of KIP-429 are for."""
    h = MigrationHarness()
    one, two, generation = h.classic_pair()
    h.joined_new("new")
    target = h.modern.target_of(one)
    keeps = next(iter(target.values()), ())
    assert set(keeps) <= {0, 1}
    assert h.heartbeat(one, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    epoch, owned = h.rejoin(one, owned=(0, 1))
    if keeps == (0, 1):
        assert (epoch, owned) == (h.modern.group_epoch, (0, 1))
    else:
        # Still in its old generation: it has not given back yet.
        assert (epoch, owned) == (generation, keeps)
        assert h.heartbeat(one, generation) is ErrorCode.REBALANCE_IN_PROGRESS
        assert h.rejoin(one, owned=owned) == (h.modern.group_epoch, keeps)
    h.rejoin(two, owned=(2, 3))
    assert_in_the_log(h)


@pytest.mark.parametrize("phase", ["join", "sync"])
def test_an_upgrade_ends_the_rebalance_that_is_under_way(phase: str) -> None:
    """Whoever waits is told to join again, to the new group."""
    h = MigrationHarness()
    one, join = h.new_member(protocol_type="consumer", protocols=wants())
    two, other = h.new_member(protocol_type="consumer", protocols=wants())
    waiting = [join, other]
    if phase == "sync":
        h.settle()
        waiting = [h.sync(two, join.response.generation_id)]
    h.joined_new("new")
    assert [w.error for w in waiting] == [ErrorCode.REBALANCE_IN_PROGRESS] * len(waiting)
    owned = [*h.rejoin(one)[1], *h.rejoin(two)[1]]
    last = h.beat("new", h.modern.members["new"].member_epoch)
    mine = h.modern.members["new"].assigned.values()
    assert sorted([*owned, *(p for numbers in mine for p in numbers)]) == [0, 1, 2, 3]
    assert last.error is ErrorCode.NONE
    assert_in_the_log(h)


def test_ids_that_were_given_out_are_good_in_the_new_group() -> None:
    """KIP-394: the member comes back with it, and the group is another one."""
    h = MigrationHarness()
    h.classic_pair()
    member_id = h.join(protocols=wants()).response.member_id
    h.joined_new("new")
    epoch, _ = h.rejoin(member_id)
    assert epoch == h.modern.group_epoch
    assert h.modern.classic_member_count == 3


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_no_upgrade_without_the_policy(policy: str) -> None:
    """The group stays what it is, and its members see nothing of it."""
    h = MigrationHarness(**{POLICY: policy})
    one, _, generation = h.classic_pair()
    refused = h.beat("new", 0)
    assert refused.error is ErrorCode.GROUP_ID_NOT_FOUND
    assert "online upgrade is disabled" in refused.response.error_message
    assert h.heartbeat(one, generation) is ErrorCode.NONE
    assert_in_the_log(h)


def test_a_group_that_is_full_is_not_upgraded() -> None:
    h = MigrationHarness(group_consumer_max_size=2)
    one, _, generation = h.classic_pair()
    assert h.beat("new", 0).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert h.heartbeat(one, generation) is ErrorCode.NONE


def test_an_empty_classic_group_is_one_of_either_kind() -> None:
    """Whatever the policy; offsets stay."""
    h = MigrationHarness(**{POLICY: "disabled"})
    one, two, _ = h.classic_pair()
    h.leave(one, two)
    assert h.commit({("t", 0): 5}) == [ErrorCode.NONE]
    assert h.joined_new("new").partitions == (0, 1, 2, 3)
    assert h.shard.offsets.get("g", "t", 0) is not None
    assert_in_the_log(h)


def test_an_empty_consumer_group_is_one_of_either_kind() -> None:
    h = MigrationHarness(**{POLICY: "disabled"})
    epoch = h.joined_new("new").response.member_epoch
    assert h.beat("new", -1).error is ErrorCode.NONE
    assert epoch == 1
    assert h.join("unknown", protocols=wants()).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert isinstance(h.shard.groups["g"], ConsumerGroup)
    h.classic_pair()
    assert h.classic.state is ClassicGroupState.STABLE
    assert_in_the_log(h)


@pytest.mark.parametrize(
    ("failure", "gave_up"),
    # Too few replicas are known before; a full disk is not.
    [([], 0), ([ErrorCode.NOT_ENOUGH_REPLICAS], 1)],
)
def test_an_empty_consumer_group_stays_one_without_a_record(
    failure: list[ErrorCode], gave_up: int
) -> None:
    """Else the next coordinator finds two groups of a name, and gives up the one with members."""
    h = MigrationHarness()
    h.joined_new("new")
    h.beat("new", -1)
    if failure:
        h.log.fail_next = failure
    else:
        h.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
        assert h.join(protocols=wants()).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert isinstance(h.shard.groups["g"], ConsumerGroup)
        h.log.fail_with = None
    h.join(protocols=wants())
    assert h.gave_up == gave_up


# -- downgrade --


def mixed_group(h: MigrationHarness) -> tuple[str, str, int]:
    """Two classic members and `new`, all reconciled; the ids of the classic ones and the epoch."""
    one, two, generation = h.classic_pair()
    h.joined_new("new")
    for name in (one, two):
        assert h.heartbeat(name, generation) is ErrorCode.REBALANCE_IN_PROGRESS
        h.rejoin(name)
    h.beat("new", h.modern.members["new"].member_epoch)
    assert h.modern.state_name == "Stable"
    return one, two, h.modern.group_epoch


@pytest.mark.parametrize("way", ["heartbeat", "LeaveGroup", "session"])
def test_when_the_last_new_member_goes_it_is_a_classic_group(way: str) -> None:
    """It keeps its epoch as its generation, and rebalances at once."""
    h = MigrationHarness()
    one, two, epoch = mixed_group(h)
    if way == "heartbeat":
        assert h.beat("new", -1).error is ErrorCode.NONE
    elif way == "LeaveGroup":
        assert h.leave("new") == [ErrorCode.NONE]
    else:
        for _ in range(5):
            h.timer.advance(9_000)
            for name in (one, two):
                assert h.heartbeat(name, epoch) in (
                    ErrorCode.NONE,
                    ErrorCode.REBALANCE_IN_PROGRESS,
                )
        h.timer.advance(1)
    group = h.classic
    assert (group.state, group.generation) == (ClassicGroupState.PREPARING_REBALANCE, epoch)
    assert_in_the_log(h)
    assert h.heartbeat(one, epoch) is ErrorCode.REBALANCE_IN_PROGRESS
    joins = [h.join(name, protocols=wants()) for name in (one, two)]
    assert [j.response.generation_id for j in joins] == [epoch + 1] * 2
    leader = joins[0].response.leader
    follower = two if leader == one else one
    waiting = h.sync(follower, epoch + 1)
    h.sync(leader, epoch + 1, {leader: of_topic(0, 1), follower: of_topic(2, 3)})
    assert partitions_of(waiting.response.assignment) == (2, 3)
    assert h.classic.state is ClassicGroupState.STABLE
    assert_in_the_log(h)


@pytest.mark.parametrize("policy", ["upgrade", "disabled"])
def test_no_downgrade_without_the_policy(policy: str) -> None:
    """Classic members go on in a consumer group of their own."""
    h = MigrationHarness()
    one, two, epoch = mixed_group(h)
    h.settings = h.settings.replace(**{POLICY: policy})
    # As after a restart with other settings.
    log = h.shard.groups["g"]
    h.shard, h.protocol, h.offsets = h.new_shard()
    h.shard.groups["g"] = log
    assert h.beat("new", -1).error is ErrorCode.NONE
    assert h.modern.group_epoch == epoch + 1
    owned: list[int] = []
    for name in (one, two):
        assert h.heartbeat(name, epoch) is ErrorCode.REBALANCE_IN_PROGRESS
        owned += h.rejoin(name)[1]
    assert sorted(owned) == [0, 1, 2, 3]


def test_a_returning_static_member_may_be_the_last_of_the_new_protocol() -> None:
    """With the same subscription nobody has to join again: only the member's id changes."""
    h = MigrationHarness()
    one, two, generation = h.classic_pair()
    h.joined_new("new", instance_id="i")
    for name in (one, two):
        h.heartbeat(name, generation)
        h.rejoin(name)
    h.beat("new", h.modern.members["new"].member_epoch, instance_id="i")
    epoch = h.modern.group_epoch
    had = h.modern.members["new"].assigned
    assert h.modern.state_name == "Stable"
    back = h.join(instance="i", protocols=wants())
    assert back.error is ErrorCode.NONE
    group = h.classic
    assert (group.state, group.generation) == (ClassicGroupState.STABLE, epoch)
    assert back.response.generation_id == epoch
    sync = h.sync(back.response.member_id, epoch, instance="i")
    assert partitions_of(sync.response.assignment) == next(iter(had.values()))
    assert h.heartbeat(one, epoch) is ErrorCode.NONE
    assert "new" not in group.members
    assert_in_the_log(h)


def test_a_returning_static_member_with_other_topics_starts_a_rebalance() -> None:
    h = MigrationHarness()
    one, two, generation = h.classic_pair()
    h.joined_new("new", instance_id="i")
    for name in (one, two):
        h.heartbeat(name, generation)
        h.rejoin(name)
    h.join(instance="i", protocols=wants("t", "other"))
    assert h.classic.state is ClassicGroupState.PREPARING_REBALANCE
    assert set(h.classic.static_members) == {"i"}
    assert_in_the_log(h)


def test_a_member_that_waits_for_partitions_is_not_forgotten_by_a_downgrade() -> None:
    """The new generation says that it has what its target gives it: it has to come and get it."""
    h = MigrationHarness()
    h.joined_new("new", instance_id="i")
    one, join = h.new_member(protocol_type="consumer", protocols=wants())
    h.timer.advance(1_000)
    epoch = join.response.generation_id
    assert partitions_of(h.sync(one, epoch).response.assignment) == ()
    assert h.heartbeat(one, epoch) is ErrorCode.NONE
    h.join(instance="i", protocols=wants())
    assert h.classic.generation == epoch
    assert h.heartbeat(one, epoch) is ErrorCode.REBALANCE_IN_PROGRESS
    assert_in_the_log(h)


def test_what_no_record_has_room_for_is_refused() -> None:
    """The log would refuse it when it has changed memory already, and the shard be read anew."""
    large = (("range", wants()[0][1] + bytes(PROTOCOLS_SIZE_MAX)),)
    h = MigrationHarness()
    h.joined_new("new")
    join = h.join(protocols=large)
    assert join.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    other = MigrationHarness()
    other.new_member(protocol_type="consumer", protocols=large)
    other.settle()
    assert other.beat("new", 0).error is ErrorCode.GROUP_ID_NOT_FOUND


def test_answers_wait_for_the_log() -> None:
    """A member that hears of the new group finds it after a crash."""
    h = MigrationHarness()
    h.classic_pair()
    h.log.hold = True
    new = h.beat("new", 0)
    h.timer.advance(100)
    assert new.is_parked
    h.log.commit_held()
    assert new.error is ErrorCode.NONE
    h.log.commit_held()
    left = h.beat("new", -1)
    assert left.is_parked
    h.log.commit_held()
    assert left.error is ErrorCode.NONE


def test_leaving_is_answered_when_it_is_written() -> None:
    """Or with what the log says."""
    h = MigrationHarness()
    one, two, _ = mixed_group(h)
    h.log.hold = True
    assert h.leave(one) == []
    h.log.commit_held()
    assert one not in h.modern.members
    answers: list[ErrorCode] = []
    h.protocol.leave(
        "g", [MemberIdentity(member_id=two)], lambda code, members: answers.append(code)
    )
    assert answers == []
    h.log.fail_held(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert answers == [ErrorCode.NOT_COORDINATOR]
