"""Where replicas lie is reported until the controller has written it down, and only then not."""

import asyncio
from uuid import UUID

import pytest

from broker.controller.images.broker_records import (
    BrokerRegistration,
    broker_key,
    encode_registration,
)
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.features import SUPPORTED
from broker.controller.images.metadata_records import chunks, encode_topic, topic_key
from broker.controller.images.partition_image import PartitionImage
from broker.membership.replica_places import AGAIN_MS, REQUEST_MAX, ReplicaPlaces
from protocol.error_codes import ErrorCode
from protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)
from tests.fakes.timer import ManualTimer

TOPIC = UUID(int=5000)
PLACE, OTHER = UUID(int=1001), UUID(int=1002)
EPOCH = 17


class World:
    """Broker 2 with a replica of each partition, and a controller that may refuse."""

    def __init__(self, partitions: int = 3) -> None:
        self.timer = ManualTimer()
        self.is_let_in = True
        self.code = ErrorCode.NONE
        self.codes: dict[int, ErrorCode] = {}
        self.asked: list[dict[int, UUID]] = []
        self.image = ClusterImage.empty(controller_id=1)
        features = encode_registration(BrokerRegistration(UUID(int=1), {}, features=SUPPORTED))
        records = [PartitionImage(i, 1, 0, 0, (1, 2), (1, 2)) for i in range(partitions)]
        self.image = self.image.updated(
            [
                (broker_key(1), features),
                (topic_key("t"), encode_topic(TOPIC)),
                *chunks(TOPIC, records),
            ],
            2,
        )
        self.places = ReplicaPlaces(
            self,
            node_id=2,
            broker_epoch=lambda: EPOCH,
            is_let_in=lambda: self.is_let_in,
            image=lambda: self.image,
            timer=self.timer,
        )

    async def assign_replicas(
        self, request: AssignReplicasToDirsRequest, *, timeout_ms: float
    ) -> AssignReplicasToDirsResponse:
        assert (request.broker_id, request.broker_epoch) == (2, EPOCH)
        assert timeout_ms > 0
        self.asked.append(
            {
                partition.partition_index: directory.id_
                for directory in request.directories
                for topic in directory.topics
                for partition in topic.partitions
            }
        )
        if self.code:
            return AssignReplicasToDirsResponse(error_code=int(self.code))
        return AssignReplicasToDirsResponse(
            directories=[
                AssignReplicasToDirsResponseDirectoryData(
                    id_=directory.id_,
                    topics=[
                        AssignReplicasToDirsResponseTopicData(
                            topic_id=topic.topic_id,
                            partitions=[
                                AssignReplicasToDirsResponsePartitionData(
                                    partition_index=one.partition_index,
                                    error_code=int(
                                        self.codes.get(one.partition_index, ErrorCode.NONE)
                                    ),
                                )
                                for one in topic.partitions
                            ],
                        )
                        for topic in directory.topics
                    ],
                )
                for directory in request.directories
            ]
        )

    async def pass_ms(self, ms: float = 0.0) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        if ms:
            self.timer.advance(ms)
            for _ in range(20):
                await asyncio.sleep(0)


@pytest.fixture
async def world() -> World:
    return World()


async def test_a_place_that_the_image_has_is_not_reported(world: World) -> None:
    known = world.image.topics["t"].partitions[0].placed(2, PLACE)
    partitions = [known, *world.image.topics["t"].partitions[1:]]
    world.image = world.image.updated(chunks(TOPIC, partitions), 3)
    world.places.found(TOPIC, 0, PLACE)
    await world.pass_ms()
    assert world.asked == []
    world.places.found(TOPIC, 0, OTHER)
    await world.pass_ms()
    assert world.asked == [{0: OTHER}]


async def test_places_wait_until_this_life_is_let_in(world: World) -> None:
    world.is_let_in = False
    world.places.found(TOPIC, 0, PLACE)
    world.places.found(TOPIC, 1, OTHER)
    await world.pass_ms(AGAIN_MS)
    assert world.asked == []
    world.is_let_in = True
    world.places.image_changed()
    await world.pass_ms()
    assert world.asked == [{0: PLACE, 1: OTHER}]
    assert len(world.places) == 0


@pytest.mark.parametrize("code", [ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH])
async def test_what_nobody_has_taken_is_said_again(world: World, code: ErrorCode) -> None:
    world.code = code
    world.places.found(TOPIC, 0, PLACE)
    await world.pass_ms(AGAIN_MS)
    world.code = ErrorCode.NONE
    await world.pass_ms(AGAIN_MS)
    assert world.asked[-1] == {0: PLACE}
    assert len(world.places) == 0


async def test_replicas_that_are_gone_are_dropped_and_others_said_again(world: World) -> None:
    world.codes = {0: ErrorCode.UNKNOWN_TOPIC_ID, 1: ErrorCode.REQUEST_TIMED_OUT}
    world.places.found(TOPIC, 0, PLACE)
    world.places.found(TOPIC, 1, PLACE)
    await world.pass_ms()
    assert len(world.places) == 1
    world.codes.clear()
    await world.pass_ms(AGAIN_MS)
    assert world.asked[-1] == {1: PLACE}
    assert len(world.places) == 0


async def test_the_newest_place_is_the_one_that_is_reported(world: World) -> None:
    world.places.found(TOPIC, 0, PLACE)
    world.places.found(TOPIC, 0, OTHER)
    await world.pass_ms()
    assert world.asked == [{0: OTHER}]


async def test_a_request_has_a_bound() -> None:
    world = World(REQUEST_MAX + 10)
    for index in range(REQUEST_MAX + 10):
        world.places.found(TOPIC, index, PLACE)
    await world.pass_ms()
    assert [len(asked) for asked in world.asked] == [REQUEST_MAX, 10]


async def test_a_move_waits_for_the_answer(world: World) -> None:
    """Topics that the controller has written down, and no others."""
    assert await world.places.assign({TOPIC: {0: PLACE}}) == {TOPIC}
    world.codes = {0: ErrorCode.REQUEST_TIMED_OUT}
    assert await world.places.assign({TOPIC: {0: OTHER}}) == set()
    world.code = ErrorCode.NOT_CONTROLLER
    assert await world.places.assign({TOPIC: {0: OTHER}}) == set()


async def test_a_move_that_failed_is_taken_back_however_long_it_takes(world: World) -> None:
    """Also where the image does not show yet what was noted: it says what is right by chance."""
    records = [one.placed(2, PLACE) for one in world.image.topics["t"].partitions]
    world.image = world.image.updated(chunks(TOPIC, records), 3)
    world.places.found(TOPIC, 0, PLACE)
    assert len(world.places) == 0
    world.code = ErrorCode.NOT_CONTROLLER
    assert await world.places.assign({TOPIC: {0: PLACE}}, stays=True) == set()
    assert len(world.places) == 1
    # The next move is refused as well, and is not what stays.
    assert await world.places.assign({TOPIC: {0: OTHER}}) == set()
    world.places.found(TOPIC, 0, PLACE)
    assert len(world.places) == 1
    world.code = ErrorCode.NONE
    await world.pass_ms(AGAIN_MS)
    assert world.asked[-1] == {0: PLACE}
    assert len(world.places) == 0
    asked = len(world.asked)
    world.places.found(TOPIC, 0, PLACE)
    await world.pass_ms(AGAIN_MS)
    assert len(world.asked) == asked


async def test_a_controller_of_an_older_release_is_not_asked(world: World) -> None:
    """It would close the connection, which other requests share."""
    old = encode_registration(BrokerRegistration(UUID(int=1), {}))
    world.image = world.image.updated([(broker_key(1), old)], 3)
    world.places.found(TOPIC, 0, PLACE)
    await world.pass_ms(AGAIN_MS)
    assert world.asked == []
    assert await world.places.assign({TOPIC: {1: PLACE}}) == set()
    assert len(world.places) == 1
    await world.places.aclose()
