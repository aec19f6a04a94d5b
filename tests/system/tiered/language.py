"""The scenario language: what happens to tiered topics, and what must then be where.

    scenario = (
        Scenario("offload")
        .create_topic("t")                                   # one batch per segment, tiered
        .expect_segment_offloaded(0, "t", 0, 0, ("k0", "v0"))  # of the next produce
        .expect_earliest_local_offset("t", 0, 1)             # of the next produce
        .produce("t", 0, ("k0", "v0"), ("k1", "v1"))
        .bounce(0)
        .consume("t", 0, 0, total=2, from_remote=1)
    )
    await scenario.run(cluster)

Expectations that belong to an action are said before it, as in Kafka's language: segments and the
earliest local offset before `produce`, fetches before `consume`, deletions before `delete_records`,
`delete_topic` or `wait_for_remote_segment_deletion`. One that no action has taken is a mistake of
the scenario, and told before anything runs.

After every action the offset invariants of all tiered partitions are checked (see `offsets`). A
failure shows the whole script with the action it failed at.

`brokers` is how many the scenario needs, as it stands in Kafka's suite.

Source: Kafka, TieredStorageTestBuilder.java.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Self

from tests.system.tiered import actions
from tests.system.tiered.actions import Action, ExpectedSegment
from tests.system.tiered.cluster import Cluster
from tests.system.tiered.context import Context, KeyValue

Spec = tuple[str, str] | tuple[str, str, int] | KeyValue


class ScenarioError(AssertionError):
    """An action failed, or an invariant after it; the text is the script, and what was wrong."""


class Scenario:
    """Collects actions; `run` runs them."""

    def __init__(self, name: str, *, brokers: int = 1) -> None:
        self.name = name
        self.brokers = brokers
        self.actions: list[Action] = []
        self._segments: dict[tuple[str, int], list[ExpectedSegment]] = {}
        self._earliest_local: dict[tuple[str, int], int] = {}
        self._deletions: dict[str, dict[int, int]] = {}
        self._fetches_max: dict[tuple[str, int], int] = {}

    def then(self, action: Action) -> Self:
        """Any action, also one of a test's own."""
        self.actions.append(action)
        return self

    # -- topics ----------------------------------------------------------------------------------

    def create_topic(
        self,
        topic: str,
        partitions: int = 1,
        *,
        replication_factor: int = 1,
        batches_per_segment: int = 1,
        assignment: Mapping[int, Sequence[int]] | None = None,
        tiered: bool = True,
        configs: Mapping[str, str] | None = None,
    ) -> Self:
        """See `actions.CreateTopic`."""
        factor = replication_factor
        return self.then(
            actions.CreateTopic(
                *(topic, partitions, factor, batches_per_segment, assignment, tiered),
                dict(configs or {}),
            )
        )

    def create_partitions(
        self, topic: str, partitions: int, assignment: Mapping[int, Sequence[int]] | None = None
    ) -> Self:
        """See `actions.CreatePartitions`."""
        return self.then(actions.CreatePartitions(topic, partitions, assignment))

    def delete_topic(self, topic: str) -> Self:
        """With the deletions expected so far."""
        return self.then(actions.DeleteTopic(topic, self._deletions.pop(topic, {})))

    def wait_for_remote_segment_deletion(self, topic: str) -> Self:
        """For the deletions expected so far."""
        return self.then(actions.DeleteTopic(topic, self._deletions.pop(topic, {}), delete=False))

    def expect_deletion_in_remote(self, topic: str, partition: int, segments: int) -> Self:
        """So many of the segments known so far go with the next action that deletes."""
        self._deletions.setdefault(topic, {})[partition] = segments
        return self

    def update_topic_config(
        self, topic: str, values: Mapping[str, str], unset: Sequence[str] = ()
    ) -> Self:
        """See `actions.UpdateTopicConfig`."""
        return self.then(actions.UpdateTopicConfig(topic, values, unset))

    def update_broker_config(
        self, broker: int, values: Mapping[str, str], unset: Sequence[str] = ()
    ) -> Self:
        """See `actions.UpdateBrokerConfig`."""
        return self.then(actions.UpdateBrokerConfig(broker, values, unset))

    # -- records ---------------------------------------------------------------------------------

    def expect_segment_offloaded(
        self, broker: int, topic: str, partition: int, base_offset: int, *records: Spec
    ) -> Self:
        """After the next `produce` a segment begins there and holds these of its records."""
        found = tuple(KeyValue(*record) for record in records)
        expected = ExpectedSegment(broker, base_offset, found)
        self._segments.setdefault((topic, partition), []).append(expected)
        return self

    def expect_earliest_local_offset(self, topic: str, partition: int, offset: int) -> Self:
        """After the next `produce` the local log begins there."""
        self._earliest_local[topic, partition] = offset
        return self

    def produce(self, topic: str, partition: int, *records: Spec) -> Self:
        """One batch per record, in order."""
        where = (topic, partition)
        return self.then(
            actions.Produce(
                topic,
                partition,
                tuple(KeyValue(*record) for record in records),
                tuple(self._segments.pop(where, ())),
                self._earliest_local.pop(where, None),
            )
        )

    def expect_fetches_at_most(self, topic: str, partition: int, count: int) -> Self:
        """The next `consume` asks the object store no more often."""
        self._fetches_max[topic, partition] = count
        return self

    def consume(
        self, topic: str, partition: int, offset: int, *, total: int, from_remote: int
    ) -> Self:
        """See `actions.Consume`."""
        limit = self._fetches_max.pop((topic, partition), None)
        return self.then(actions.Consume(topic, partition, offset, total, from_remote, limit))

    def delete_records(self, topic: str, partition: int, before_offset: int) -> Self:
        """With the deletions expected so far."""
        expected = self._deletions.pop(topic, {})
        return self.then(actions.DeleteRecords(topic, partition, before_offset, expected))

    # -- brokers and replicas --------------------------------------------------------------------

    def bounce(self, broker: int) -> Self:
        """See `actions.BounceBroker`."""
        return self.then(actions.BounceBroker(broker))

    def stop(self, broker: int) -> Self:
        """See `actions.StopBroker`."""
        return self.then(actions.StopBroker(broker))

    def start(self, broker: int) -> Self:
        """See `actions.StartBroker`."""
        return self.then(actions.StartBroker(broker))

    def erase_broker_storage(self, broker: int, matches: Callable[[str], bool]) -> Self:
        """See `actions.EraseBrokerStorage`."""
        return self.then(actions.EraseBrokerStorage(broker, matches))

    def reassign_replica(self, topic: str, partition: int, brokers: Sequence[int]) -> Self:
        """See `actions.ReassignReplica`."""
        return self.then(actions.ReassignReplica(topic, partition, brokers))

    def shrink_replica(self, topic: str, partition: int, brokers: Sequence[int]) -> Self:
        """See `actions.ShrinkReplica`."""
        return self.then(actions.ShrinkReplica(topic, partition, brokers))

    def alter_log_dir(self, topic: str, partition: int, broker: int) -> Self:
        """See `actions.AlterLogDir`."""
        return self.then(actions.AlterLogDir(topic, partition, broker))

    # -- expectations ----------------------------------------------------------------------------

    def expect_leader(
        self, topic: str, partition: int, broker: int, *, elect: bool = False
    ) -> Self:
        """See `actions.ExpectLeader`."""
        return self.then(actions.ExpectLeader(topic, partition, broker, elect))

    def expect_in_isr(self, topic: str, partition: int, broker: int) -> Self:
        """See `actions.ExpectBrokerInISR`."""
        return self.then(actions.ExpectBrokerInISR(topic, partition, broker))

    def expect_leader_epoch_checkpoint(
        self, broker: int, topic: str, partition: int, begin_epoch: int, start_offset: int
    ) -> Self:
        """See `actions.ExpectLeaderEpochCheckpoint`."""
        return self.then(
            actions.ExpectLeaderEpochCheckpoint(broker, topic, partition, begin_epoch, start_offset)
        )

    def expect_list_offsets(
        self, topic: str, partition: int, timestamp: int, *, epoch: int, offset: int
    ) -> Self:
        """See `actions.ExpectListOffsets`."""
        return self.then(actions.ExpectListOffsets(topic, partition, timestamp, epoch, offset))

    def expect_empty_remote_storage(self, topic: str, partition: int) -> Self:
        """See `actions.ExpectEmptyRemoteStorage`."""
        return self.then(actions.ExpectEmptyRemoteStorage(topic, partition))

    def expect_topic_id_in_remote_storage(self, topic: str) -> Self:
        """See `actions.ExpectTopicIdToMatchInRemoteStorage`."""
        return self.then(actions.ExpectTopicIdToMatchInRemoteStorage(topic))

    def expect_metadata_partitions(self, topic: str, partitions: Sequence[int]) -> Self:
        """See `actions.ExpectUserTopicMappedToMetadataPartitions`."""
        return self.then(actions.ExpectUserTopicMappedToMetadataPartitions(topic, partitions))

    # -- running ---------------------------------------------------------------------------------

    def script(self, mark: int | None = None) -> str:
        """The actions, one a line; `mark` points at one."""
        return "\n".join(
            f"{'->' if number == mark else '  '} {number + 1:2} {action}"
            for number, action in enumerate(self.actions)
        )

    async def run(self, cluster: Cluster) -> int:
        """Run on brokers that run; how many times invariants were checked.

        Raises:
            ScenarioError: See there.
        """
        loose = [self._segments, self._earliest_local, self._deletions, self._fetches_max]
        assert not any(loose), f"expectations that no action takes: {loose}"
        assert len(cluster.nodes) >= self.brokers
        context = Context(cluster)
        try:
            for number, action in enumerate(self.actions):
                try:
                    await action.run(context)
                    await context.check_offsets()
                except Exception as error:
                    raise ScenarioError(
                        f"{self.name} on {cluster.kind}:\n{self.script(number)}\n"
                        f"{type(error).__name__}: {error}\n{cluster.logs()}"
                    ) from error
        finally:
            await context.close()
        return context.checks
