"""A broker through a random life - topics come and go, records, settings, crashes - beside a model.

A crash is what kill -9 leaves: the files as they are at some moment, taken over by a new broker.
Two log directories. The seed is in the test's name.
"""

import shutil
from pathlib import Path
from random import Random

import pytest

from protocol.error_codes import ErrorCode
from tests.fakes.network.client import EARLIEST, Client
from tests.system.conftest import Node, StartNode

NAMES = ("a", "b", "c")
PARTITIONS = 2
STEPS = 120


class Topic:
    """What a topic must hold: per partition the values, and from where they may begin."""

    def __init__(self) -> None:
        self.values: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.start = [0] * PARTITIONS
        self.start_certain = [0] * PARTITIONS
        self.committed: dict[int, int] = {}
        self.max_message_bytes = 1_048_588


class Life:
    """The broker, the model, and what can happen to both."""

    def __init__(self, start_node: StartNode, directory: Path, seed: int) -> None:
        self.random = Random(seed)
        self.start_node = start_node
        self.directory = directory
        self.generation = 0
        self.topics: dict[str, Topic] = {}
        self.producer_ids: list[int] = []
        self.node: Node
        self.client: Client

    @property
    def log_dirs(self) -> tuple[str, str]:
        base = self.directory / f"life-{self.generation}"
        return str(base / "one"), str(base / "two")

    async def start(self) -> None:
        self.node = await self.start_node(log_dirs=self.log_dirs)
        self.client = await self.node.client()

    def some(self) -> tuple[str, Topic, int] | None:
        if not self.topics:
            return None
        name = self.random.choice(sorted(self.topics))
        return name, self.topics[name], self.random.randrange(PARTITIONS)

    async def create(self) -> None:
        name = self.random.choice(NAMES)
        if name not in self.topics:
            flush = self.random.choice([1, 3, 1_000_000])
            await self.client.create_topic(name, PARTITIONS, flush_messages=flush)
            self.topics[name] = Topic()

    async def delete(self) -> None:
        chosen = self.some()
        if chosen is not None and self.random.random() < 0.3:
            await self.client.delete_topic(chosen[0])
            del self.topics[chosen[0]]

    async def produce(self) -> None:
        chosen = self.some()
        if chosen is None:
            return
        name, topic, index = chosen
        values = [self.random.randbytes(self.random.randrange(1, 400)) for _ in range(3)]
        answer = await self.client.try_produce(
            name,
            [(None, value) for value in values],
            partition=index,
            codec=self.random.randrange(5),
            acks=self.random.choice([1, -1]),
        )
        if topic.max_message_bytes < 200:
            assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
            return
        assert (answer.error_code, answer.base_offset) == (0, len(topic.values[index]))
        topic.values[index] += values

    async def cut(self) -> None:
        chosen = self.some()
        if chosen is None:
            return
        name, topic, index = chosen
        end = len(topic.values[index])
        topic.start[index] = self.random.randint(topic.start[index], end)
        await self.client.delete_records(name, topic.start[index], partition=index)

    async def alter(self) -> None:
        chosen = self.some()
        if chosen is None:
            return
        name, topic, _ = chosen
        topic.max_message_bytes = self.random.choice([100, 1_048_588])
        await self.client.alter_topic(
            name,
            max_message_bytes=topic.max_message_bytes,
            flush_messages=self.random.choice([1, 2, 1_000_000]),
            compression_type=self.random.choice(["producer", "zstd", "gzip"]),
        )

    async def commit(self) -> None:
        chosen = self.some()
        if chosen is None:
            return
        name, topic, index = chosen
        topic.committed[index] = self.random.randint(0, len(topic.values[index]))
        await self.client.commit("group", name, {index: topic.committed[index]})

    async def allocate(self) -> None:
        self.producer_ids.append((await self.client.init_producer_id())[0])
        assert self.producer_ids == sorted(set(self.producer_ids))

    async def restart(self) -> None:
        await self.node.stop()
        for topic in self.topics.values():
            topic.start_certain = list(topic.start)
        await self.start()
        await self.check()

    async def crash(self) -> None:
        before, self.generation = self.log_dirs, self.generation + 1
        for source, target in zip(before, self.log_dirs, strict=True):
            # What a thread is writing just now has its name a moment later.
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.tmp"))
        await self.node.stop()
        await self.start()
        await self.check()

    async def check(self) -> None:
        """All of the model is there, and nothing else."""
        found = {topic.name for topic in (await self.client.metadata()).topics}
        assert {name for name in found if not name.startswith("__")} == set(self.topics)
        for name, topic in self.topics.items():
            configs = await self.client.topic_configs(name)
            assert configs["max.message.bytes"] == str(topic.max_message_bytes)
            for index, values in enumerate(topic.values):
                start = await self.client.offset(name, EARLIEST, partition=index)
                # A crash may take DeleteRecords back, as in Kafka, but not what a checkpoint knew.
                assert topic.start_certain[index] <= start <= topic.start[index]
                topic.start[index] = start
                records = await self.client.read_all(name, partition=index)
                assert [r.offset for r in records] == list(range(start, len(values)))
                assert [r.value for r in records] == values[start:]
                committed = await self.client.committed("group", name, index)
                assert committed == topic.committed.get(index, -1)

    async def run(self) -> None:
        await self.start()
        usual = [self.create, self.delete, self.cut, self.alter, self.commit, self.allocate]
        steps = usual + [self.produce] * 8
        for _ in range(STEPS):
            await self.random.choice(steps)()
            if self.random.random() < 0.04:
                await self.random.choice([self.restart, self.crash])()
        await self.crash()
        await self.restart()


@pytest.mark.parametrize("seed", range(4))
async def test_what_was_acknowledged_is_there(
    start_node: StartNode, tmp_path: Path, seed: int
) -> None:
    """After every restart and crash."""
    await Life(start_node, tmp_path, seed).run()
