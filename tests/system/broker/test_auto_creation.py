"""Topics that come into being because a client asks for them."""

import asyncio

import pytest

from protocol.error_codes import ErrorCode
from tests.fakes.network.client import Client
from tests.system.conftest import Node, StartNode, until

pytestmark = pytest.mark.quick


async def code_of(client: Client, name: str, *, auto_create: bool) -> ErrorCode:
    return ErrorCode((await client.metadata(name, auto_create=auto_create)).topics[0].error_code)


async def test_metadata_creates_what_is_missing(start_node: StartNode) -> None:
    """With the broker's defaults; once, however many ask; the new topic can be used at once."""
    node = await start_node(num_partitions=3)
    clients = [await node.client(f"client-{n}") for n in range(5)]
    await asyncio.gather(*(client.metadata("new", auto_create=True) for client in clients))

    async def there() -> bool:
        return await code_of(clients[0], "new", auto_create=True) is ErrorCode.NONE

    await until(there)
    (topic,) = (await clients[0].metadata("new")).topics
    assert len(topic.partitions) == 3
    assert [await clients[1].produce("new", b"v", partition=i) for i in range(3)] == [0, 0, 0]
    answers = await asyncio.gather(*(client.metadata("new") for client in clients))
    assert {answer.topics[0].topic_id for answer in answers} == {topic.topic_id}


async def test_asking_alone_creates_nothing(node: Node) -> None:
    """`allow_auto_topic_creation=false` is what consumers and admin clients send."""
    client = await node.client()
    for _ in range(2):
        code = await code_of(client, "absent", auto_create=False)
        assert code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await client.metadata()).topics == []


async def test_it_can_be_switched_off(start_node: StartNode) -> None:
    """`auto.create.topics.enable=false`."""
    node = await start_node(auto_create_topics_enable=False)
    client = await node.client()
    for _ in range(2):
        code = await code_of(client, "absent", auto_create=True)
        assert code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await client.metadata()).topics == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "x" * 250])
async def test_bad_names_create_nothing(node: Node, name: str) -> None:
    client = await node.client()
    assert await code_of(client, name, auto_create=True) is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert (await client.metadata()).topics == []


async def test_producing_alone_creates_nothing(node: Node) -> None:
    """Kafka creates on Metadata only."""
    client = await node.client()
    refused = await client.try_produce("absent", [(None, b"v")])
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await client.metadata()).topics == []
