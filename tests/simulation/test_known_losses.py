"""Known ways in which replicated logs have lost data, each played on whole brokers.

Each test brings about the state in which others have lost something, and says so by an assertion of
its own; what must hold is asked after each event, and at the end every log is held against what
clients were told (`Stage`).
"""

import pytest

from broker.controller.images.cluster_image import ClusterImage
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.fakes.filesystem import KEEP_ALL
from tests.simulation.clients.history import History
from tests.simulation.clients.session import LOST, TOPIC, Producer, create_topic
from tests.simulation.clients.transactions import CommittedReader, TransactionalProducer
from tests.simulation.clients.transactions import Outcome as End
from tests.simulation.faults.nemesis import Fault
from tests.simulation.faults.scripts import MIN_ISR
from tests.simulation.faults.steps import alter_topic
from tests.simulation.run import run
from tests.simulation.shape import Shape
from tests.simulation.stage import ONE_PARTITION, Stage
from tests.simulation.store import HOST
from tests.simulation.world import Place

pytestmark = pytest.mark.system

QUICK_TO_LAG = Shape(partitions=1, settings={"replica_lag_time_max_ms": 1000})
FOUR = Shape(brokers=4, partitions=1, settings={"replica_lag_time_max_ms": 1000})


@pytest.mark.quick
def test_kip_101_a_follower_that_starts_again_keeps_what_is_above_its_high_watermark() -> None:
    with Stage() as stage:
        leader, (one, other) = stage.leader, stage.followers
        stage.run_for(1)
        stage.write(5)
        assert stage.high_watermark(one) < stage.end(one) == stage.end(leader)
        stage.kill(one, other)
        stage.cut((leader, one), (leader, other))
        stage.start(one, other)
        stage.until(
            lambda: all(stage.world.brokers[node].is_ready for node in (one, other)), "ready"
        )
        stage.kill(leader)
        stage.heal()
        stage.until_led(not_by=leader)
        assert stage.end(stage.leader) >= stage.run.history.acked_end[stage.place]


@pytest.mark.quick
def test_kip_101_b_logs_that_have_other_records_at_the_same_offsets_become_equal() -> None:
    with Stage() as stage:
        leader, (one, other) = stage.leader, stage.followers
        stage.write(2)
        stage.cut((leader, one), (leader, other))
        stage.write_alone(leader, 4)
        assert stage.end(leader) > stage.end(one)
        stage.kill(leader)
        stage.heal()
        stage.until_led(not_by=leader)
        stage.write(3)
        stage.start(leader)


def test_kip_279_a_leader_that_has_no_entry_for_a_followers_epoch() -> None:
    with Stage() as stage:
        first, (one, other) = stage.leader, stage.followers
        stage.write(2)
        stage.cut((first, one), (first, other))
        stage.write_alone(first, 4)
        stage.kill(first)
        stage.heal()
        second = stage.until_led(not_by=first)
        third = one + other - second
        stage.cut((second, third))
        stage.write_alone(second, 2)
        stage.kill(second)
        stage.heal()
        stage.start(first)
        stage.until_led(by=third)
        # Neither tail is the third's, nor is any entry for its epoch.
        stage.until(lambda: len(stage.record.isr) > 1, "the first has joined")
        stage.write(2)
        stage.start(second)


def test_kip_320_a_fetch_of_another_epoch_is_refused_by_the_old_and_by_the_new_leader() -> None:
    with Stage() as stage:
        stage.write(2)
        old, before = stage.leader, stage.record.leader_epoch
        stage.cut_from_store(old)
        stage.cut(*((old, node) for node in stage.followers))
        new = stage.until_led(not_by=old)

        async def fetch(node_id: int, epoch: int) -> ErrorCode:
            wanted = FetchPartition(
                partition=0, current_leader_epoch=epoch, fetch_offset=0, partition_max_bytes=1000
            )
            request = FetchRequest(
                max_bytes=1000, topics=[FetchTopic(topic=TOPIC, partitions=[wanted])]
            )
            answer = await stage.run.sessions[0].call(node_id, request)
            return ErrorCode(answer.responses[0].partitions[0].error_code)

        after = stage.record.leader_epoch
        assert stage.do(fetch(new, before)) is ErrorCode.FENCED_LEADER_EPOCH
        assert stage.do(fetch(old, after)) is ErrorCode.UNKNOWN_LEADER_EPOCH
        assert stage.do(fetch(new, after)) is ErrorCode.NONE


@pytest.mark.quick
def test_kafka_7128_who_joins_the_isr_has_reached_where_the_leaders_epoch_began() -> None:
    with Stage(shape=QUICK_TO_LAG) as stage:
        leader, (one, other) = stage.leader, stage.followers
        stage.write(2)
        stage.cut((leader, one), (leader, other))
        stage.cut_from_store(one, other)
        stage.until(lambda: stage.record.isr == (leader,), "the leader is alone")
        stage.write_alone(leader, 30)
        stage.kill(leader)
        stage.start(leader)
        stage.until_led(by=leader)
        assert stage.high_watermark(leader) < stage.end(leader)
        stage.heal()
        stage.until(lambda: len(stage.record.isr) == 3, "all have joined")


def reassign(stage: Stage, replicas: list[int]) -> None:
    """Give the partition other replicas."""

    async def ask() -> None:
        wanted = ReassignablePartition(partition_index=0, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=TOPIC, partitions=[wanted])]
        )
        session = stage.run.sessions[0]
        while True:
            try:
                answer = await session.call(session.any_broker(), request)
            except LOST:
                continue
            if not answer.error_code and not answer.responses[0].partitions[0].error_code:
                return
            await session.pause(0.3)

    stage.do(ask())


def is_assigned(stage: Stage, replicas: list[int]) -> bool:
    record = stage.record
    return list(record.replicas) == replicas and not record.adding and not record.removing


def test_a_replica_that_was_removed_and_added_again_while_it_slept_counts_as_new() -> None:
    with Stage(shape=FOUR) as stage:
        replicas = list(stage.record.replicas)
        stage.write(3)
        leader, (one, other) = stage.leader, stage.followers
        stage.pause(other)
        reassign(stage, [leader, one])
        stage.until(lambda: is_assigned(stage, [leader, one]), "it is removed")
        stage.write(3)
        reassign(stage, replicas)
        stage.write(3)
        stage.resume(other)
        stage.until(lambda: is_assigned(stage, replicas), "it is added")
        stage.until(lambda: len(stage.record.isr) == 3, "it has joined")
        stage.kill(leader, one)
        stage.run_for(1)
        stage.start(leader, one)


def test_kafka_19975_a_reassignment_ends_though_an_old_replica_is_dead() -> None:
    with Stage(shape=FOUR) as stage:
        leader, (one, other) = stage.leader, stage.followers
        (spare,) = set(stage.world.brokers) - set(stage.record.replicas)
        stage.write(3)
        stage.kill(other)
        stage.until(lambda: other not in stage.record.isr, "it has left the ISR")
        reassign(stage, [leader, one, spare])
        stage.until(lambda: is_assigned(stage, [leader, one, spare]), "it is done")
        stage.write(3)
        stage.start(other)


def leader_is_not_controller(shape: Shape = ONE_PARTITION) -> Stage:
    """A stage whose partition is led by a broker that is not the controller."""
    for seed in range(1, 50):
        stage = Stage(seed, shape)
        with stage:
            if stage.world.image.controller_id != stage.leader:
                return Stage(seed, shape)
    raise AssertionError("no such seed")


def test_kip_497_a_leader_that_was_not_told_of_its_isr_counts_who_may_be_in_it() -> None:
    with leader_is_not_controller(QUICK_TO_LAG) as stage:
        leader, controller = stage.leader, stage.world.image.controller_id
        (joining,) = (node for node in stage.followers if node != controller)
        stage.pause(joining)
        stage.until(lambda: joining not in stage.record.isr, "it has left the ISR")
        stage.run_for(0.1)
        hosts = {node: place.host for node, place in stage.world.brokers.items()}
        # What the leader asks arrives; neither the answer nor the image comes back.
        stage.world.network.cut.update([(hosts[controller], hosts[leader]), (HOST, hosts[leader])])
        stage.resume(joining)
        stage.until(lambda: joining in stage.record.isr, "it has joined")
        stage.pause(joining)
        before = stage.high_watermark(leader)
        writing = stage.begin_writing()
        stage.run_for(0.8)
        assert stage.high_watermark(leader) == before
        assert not writing.done()
        stage.resume(joining)
        stage.heal()
        stage.until(writing.done, "it is acknowledged", limit_s=60)


def test_kip_841_and_903_a_follower_that_started_again_is_not_let_in_by_its_former_life() -> None:
    with leader_is_not_controller(QUICK_TO_LAG) as stage:
        leader, controller = stage.leader, stage.world.image.controller_id
        (joining,) = (node for node in stage.followers if node != controller)
        stage.write(5)
        stage.pause(joining)
        stage.until(lambda: joining not in stage.record.isr, "it has left the ISR")
        stage.write(5)
        hosts = {node: place.host for node, place in stage.world.brokers.items()}
        stage.world.network.cut.add((hosts[leader], hosts[controller]))
        stage.resume(joining)
        stage.until(lambda: stage.end(joining) == stage.end(leader), "it has caught up")
        stage.run_for(0.2)
        # The leader has asked for it; the machine loses what it had.
        stage.crash(joining)
        stage.run_for(0.2)
        stage.start(joining)
        stage.cut((leader, joining))
        stage.until(lambda: stage.world.brokers[joining].is_ready, "it is ready")
        stage.world.network.heal((hosts[leader], hosts[controller]))
        stage.run_for(1)
        assert joining not in stage.record.isr
        stage.heal()


@pytest.mark.quick
def test_kip_966_the_last_replica_of_an_isr_does_not_lead_with_a_log_it_has_lost() -> None:
    with Stage() as stage:
        leader, (one, other) = stage.leader, stage.followers
        stage.write(5)
        stage.kill(one, other)
        stage.until(lambda: stage.record.isr == (leader,), "the leader is alone")
        assert set(stage.record.elr) == {one, other}
        writing = stage.begin_writing()
        stage.run_for(1)
        assert not writing.done()
        stage.crash(leader)
        stage.start(leader)
        stage.run_for(6)
        assert stage.leader == -1
        stage.start(one)
        assert stage.until_led() == one
        assert stage.end(one) >= stage.run.history.acked_end[stage.place]
        stage.start(other)


def test_kafka_19522_the_last_known_leader_is_not_elected_while_it_is_dead() -> None:
    with Stage() as stage:
        leader, (one, other) = stage.leader, stage.followers
        # Nothing was acknowledged: all may lose their logs.
        stage.crash(one)
        stage.crash(other)
        stage.until(lambda: stage.record.isr == (leader,), "the leader is alone")
        stage.crash(leader)
        stage.run_for(6)
        stage.start(one, other)
        stage.run_for(8)
        assert not stage.record.isr or stage.leader != leader
        assert stage.leader != leader
        stage.start(leader)
        stage.until_led()


@pytest.mark.quick
def test_kafka_10527_a_leader_that_starts_again_does_not_go_on_in_its_epoch() -> None:
    with Stage(shape=QUICK_TO_LAG) as stage:
        leader, others = stage.leader, stage.followers
        stage.write(3)
        stage.cut_from_store(*others)
        stage.cut(*((leader, other) for other in others))
        stage.until(lambda: stage.record.isr == (leader,), "the leader is alone")
        before = stage.record.leader_epoch
        stage.write_alone(leader, 3)
        stage.kill(leader)
        stage.start(leader)
        stage.until_led(by=leader)
        assert stage.record.leader_epoch > before
        stage.write_alone(leader, 3)


def test_a_topic_made_anew_has_no_records_of_a_replica_that_slept_meanwhile() -> None:
    with Stage() as stage:
        session = stage.run.sessions[0]
        place = Place("anew", 0)

        def fill(name: str) -> None:
            producer = Producer(stage.run.session(name), History(), place, acks=-1, pause_s=0.0)
            stage.do(producer.write(4), limit_s=60)

        async def delete() -> None:
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name="anew")], timeout_ms=5000)
            await session.call(stage.leader, request)

        stage.do(create_topic(session, "anew", 1))
        fill("old")
        away = stage.followers[0]
        stage.kill(away)
        stage.do(delete())
        stage.until(lambda: "anew" not in stage.world.image.topics, "it is deleted")
        stage.do(create_topic(session, "anew", 1))
        stage.until(lambda: stage.world.image.partition(*place) is not None, "it is there")
        fill("new")
        stage.start(away)
        stage.until(
            lambda: len(stage.record_of(place).isr) == 3,
            "its replicas are whole",
        )
        for node in stage.world.brokers:
            batches = b"".join(stage.world.batches(node, place, 0, 1 << 62).values())
            assert b"new-0" in batches
            assert b"old-0" not in batches


@pytest.mark.quick
def test_a_leader_that_is_cut_off_acknowledges_nothing_that_is_lost() -> None:
    with Stage() as stage:
        leader = stage.leader
        stage.write(3)
        stage.cut_from_store(leader)
        stage.cut(*((leader, other) for other in stage.followers))
        writer = stage.writer("later-idempotent")
        writer._session.believe(stage.place, leader)
        writing = stage.begin_writing(4)
        stage.run_for(2)
        assert stage.end(leader) > stage.end(stage.followers[0])
        assert not writing.done()
        stage.until_led(not_by=leader)
        stage.write(3)
        stage.heal()
        stage.until(writing.done, "it is acknowledged", limit_s=60)


def test_pauses_and_kills_leave_no_record_doubled_lost_or_out_of_order() -> None:
    for seed in (1, 2, 3):
        plan = [
            Fault(2.0, "leader comes back", 1, 2, 1.0, seed),
            Fault(20.0, "leader comes back", 1, 2, 1.0, seed + 7),
        ]
        outcome = run(seed, 40, shape=Shape(partitions=1), plan=plan)
        assert outcome.violation is None, outcome.violation
        assert outcome.acked > 100


def test_an_end_of_a_transaction_that_comes_late_ends_no_other_transaction() -> None:
    with Stage() as stage:
        run_of = stage.run
        session = run_of.session("txn0")
        producer = TransactionalProducer(
            session, run_of.load.transactions, [stage.place], pause_s=0.0
        )
        stage.until(lambda: stage.do(producer.begin()), "it begins")
        assert stage.do(producer.write(stage.place, [b"txn0-0"]))
        coordinator = producer._coordinator
        stage.pause(coordinator)
        # Sent, and read when the coordinator goes on: by then another one has taken over.
        late = stage.start_doing(producer.end(True))
        stage.run_for(1)
        state = Place("__transaction_state", 0)
        stage.until(
            lambda: stage.record_of(state).leader not in (-1, coordinator),
            "another coordinates",
        )
        stage.until(late.done, "it has ended", limit_s=60)
        run_of.load.transactions.add(late.result(), {stage.place: [b"txn0-0"]})
        again = TransactionalProducer(session, run_of.load.transactions, [stage.place], pause_s=0.0)
        stage.until(lambda: stage.do(again.begin()), "it begins again")
        assert stage.do(again.write(stage.place, [b"txn0-1"]))
        stage.resume(coordinator)
        stage.run_for(2)
        outcome = stage.do(again.end(False), limit_s=60)
        assert outcome is End.ABORTED
        run_of.load.transactions.add(outcome, {stage.place: [b"txn0-1"]})
        reader = CommittedReader(run_of.session("reader"), stage.place)
        stage.do(reader._read())
        assert b"txn0-1" not in reader.values


def test_a_restored_store_is_refused_by_those_that_run_and_by_those_that_start() -> None:
    with Stage() as stage:
        copy = stage.world.server.copy()
        stage.write(3)
        first = stage.leader
        stage.kill(first)
        stage.until_led(not_by=first)
        stage.write(3)
        stage.start(first)
        stage.until(stage.world.is_whole, "all is whole")
        epoch = stage.record.leader_epoch
        revision = stage.world.image.revision
        stage.run.invariants.forget_store()
        stage.world.server.restore(copy)
        assert stage.record.leader_epoch < epoch
        stage.run_for(10)
        for place in stage.world.brokers.values():
            if place.is_running and place.broker is not None:
                assert place.broker.controller is None or (
                    place.broker.controller.image.revision >= revision
                )
                for partition in place.broker.replicas.partitions():
                    if Place(*partition.topic_partition) == stage.place and partition.is_leader:
                        assert partition.leader_epoch >= epoch
        stage.kill(first)
        stage.start(first)
        stage.run_for(5)
        assert any("restored" in reason or "revision" in reason for reason in stage.world.exits)
        assert not stage.world.brokers[first].is_ready
        stage.gives_up()


def test_an_image_shows_all_of_a_revision_or_nothing_of_it() -> None:
    with Stage(shape=Shape(partitions=6)) as stage:
        dead = stage.leader
        seen: set[frozenset[int]] = set()

        def look(_old: ClusterImage, new: ClusterImage) -> None:
            topic = new.topics[TOPIC]
            seen.add(frozenset(one.index for one in topic.partitions if one.leader == dead))

        led = frozenset(
            one.index for one in stage.world.image.topics[TOPIC].partitions if one.leader == dead
        )
        assert len(led) > 1
        for node in set(stage.world.brokers) - {dead}:
            broker = stage.world.brokers[node].broker
            assert broker is not None
            assert broker.controller is not None
            broker.controller.subscribe_now(look)
        stage.kill(dead)
        stage.until_led(not_by=dead)
        stage.run_for(1)
        assert seen == {led, frozenset()} or seen == {frozenset()}


def test_a_controller_that_was_deposed_changes_nothing() -> None:
    with leader_is_not_controller(QUICK_TO_LAG) as stage:
        old = stage.world.image.controller_id
        epoch = stage.world.image.controller_epoch
        (lagging,) = (node for node in stage.followers if node != old)
        stage.cut_from_store(old)
        stage.pause(lagging)
        # The leader asks the old controller for another ISR, which it cannot write.
        stage.until(lambda: stage.world.image.controller_id not in (-1, old), "there is another")
        stage.heal()
        stage.run_for(3)
        assert stage.world.image.controller_epoch > epoch
        assert not stage.world.server.store.unguarded
        stage.resume(lagging)


@pytest.mark.quick
def test_leases_that_end_before_their_time_move_no_leader() -> None:
    with Stage() as stage:
        before = stage.record
        stage.write(2)
        server = stage.world.server
        stage.world.loop.spawn(server.process, server.end_leases(sorted(server.leases)))
        stage.run_for(0.5)
        stage.write(2)
        stage.run_for(5)
        assert (stage.record.leader, stage.record.leader_epoch) == (
            before.leader,
            before.leader_epoch,
        )
        assert stage.record.isr == before.isr


@pytest.mark.parametrize("boots", [False, True])
def test_a_disk_as_it_was_before_is_cut_and_filled_up(boots: bool) -> None:
    """Nothing on it says so where the process alone has ended: its note is of this life, too."""
    with Stage() as stage:
        one, other = stage.followers
        stage.write(3)
        copy = stage.world.brokers[one].filesystem.after_crash(KEEP_ALL)
        stage.write(3)
        end = stage.end(stage.leader)
        place = stage.world.brokers[one]
        place.restore(copy, boots=boots)
        stage.start(one)
        stage.until(
            lambda: place.is_ready and stage.end(one) == end, "it has fetched what it lacked"
        )
        # Who was in sync with all of it may lead; the old disk only since it has it.
        stage.until(lambda: one in stage.record.isr, "it is in sync")
        stage.kill(stage.leader, other)
        stage.until_led(by=one)


def test_who_was_eligible_is_not_where_the_leader_alone_is_enough() -> None:
    """A minimum that goes down lets the leader commit what those outside the ISR lack (KIP-966)."""
    with Stage() as stage:
        leader, (one, other) = stage.leader, stage.followers
        stage.write(3)
        stage.pause(one)
        stage.pause(other)
        stage.until(lambda: stage.record.isr == (leader,), "it is alone")
        assert stage.record.elr
        task = stage.begin_writing(3)
        session = stage.run.session("operator")
        stage.do(session.call(leader, alter_topic(TOPIC, MIN_ISR, "1")))
        # Of three brokers the writer asks any who leads, and waits ten seconds for a paused one.
        stage.until(task.done, "one replica is enough", limit_s=300)
        assert stage.record.elr == ()
        stage.kill(leader)
        stage.resume(one)
        stage.resume(other)
        stage.run_for(6)
        assert stage.record.leader == -1
        stage.start(leader)
        stage.until_led(by=leader)
