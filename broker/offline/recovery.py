"""Recovery of a cluster's store that was restored from an old copy, emptied, or lost.

    no broker lives ──> plan ──> mark: recovering ──> keys, until nothing differs
    ──> one transaction: no broker registered, a new incarnation, mark: recovered

From the mark to the last transaction no broker takes the store for whole. Broken off anywhere, the
same command goes on: the plan is made anew from what is there. The brokers' directories are not
written to: at its next start each sees in the mark that the new incarnation replaces its own, and
that its directories were read.
"""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

from broker.controller.images.broker_records import BROKER_KEYS
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.controller_history import ControllerHistory, Write
from broker.controller.images.features import INITIAL
from broker.controller.images.metadata_records import (
    CLUSTER_ID_KEY,
    CONTROLLER_KEY,
    FEATURES_KEY,
    INCARNATION_KEY,
    LIVE,
    PRODUCER_IDS_KEY,
    ConfigResource,
    ResourceType,
    chunks,
    config_key,
    decode_next_producer_id,
    encode_config,
    encode_features,
    encode_next_producer_id,
    encode_topic,
    partitions_prefix,
    topic_key,
)
from broker.controller.images.store_marks import (
    ORIGIN_KEY,
    RECOVERY_KEY,
    Origin,
    OriginState,
    RecoveredBroker,
    Recovery,
    RecoveryState,
    decode_origin,
    decode_recovery,
)
from broker.controller.store.metadata_store import (
    Compare,
    Delete,
    KeyValue,
    MetadataStore,
    Put,
    key_absent,
    value_equals,
)
from broker.controller.store.whole_range import whole_range
from broker.controller.topic_planner import fresh_id
from broker.offline.directory_facts import FactsError, NodeFacts
from broker.offline.key_copy import TargetChangedError, make_equal
from broker.offline.recovery_plan import Planner, RecoveryPlan, check_cluster
from broker.runtime.pauses import pause
from config.broker import BrokerConfig
from storage.environment.environment import Environment
from storage.types.uuid_text import format_uuid, parse_uuid

LEASES_END_MS: Final = 15_000.0
"""For how long brokers without a process are waited for: their leases end by themselves."""

LOOK_AGAIN_MS: Final = 500.0

SHOWN_MAX: Final = 3
"""Partitions that a line of evidence names."""


class StoreRecovery:
    """One recovery: `plan`, then, if that is wanted, `execute`."""

    def __init__(
        self,
        store: MetadataStore,
        nodes: Sequence[NodeFacts],
        *,
        absent: Collection[int],
        settings: BrokerConfig,
        environment: Environment,
    ) -> None:
        """Touch nothing yet.

        Args:
            store: Of the cluster.
            nodes: What the directories say, by broker.
            absent: Brokers whose directories, or some of them, are not here, as the operator says.
            settings: For what internal topics are set to.
            environment: Clock, timer, randomness.
        """
        self._store = store
        self._nodes = list(nodes)
        self._absent = frozenset(absent)
        self._settings = settings
        self._environment = environment
        self._items: dict[str, KeyValue] = {}
        self._revision = 0
        self._image = ClusterImage.empty()
        self._before = Recovery(RecoveryState.RECOVERED)

    async def plan(self) -> RecoveryPlan:
        """What would be written; nothing is.

        Raises:
            FactsError: Brokers run, or directories are missing, or are of another cluster.
            MetadataFormatError: The store cannot be read.
            StoreError: It does not answer.
        """
        await self._read()
        self._check()
        named = [
            parse_uuid(directory.incarnation)
            for node in self._nodes
            for directory in node.directories
        ]
        stored = self._incarnation
        before = [*self._before.replaces, *named, *([] if stored is None else [stored])]
        plan = Planner(self._image, self._nodes, absent=self._absent, settings=self._settings).plan(
            before
        )
        plan.evidence += self._evidence(plan)
        return plan

    async def execute(self, plan: RecoveryPlan) -> None:
        """Write what was planned just now.

        Raises:
            TargetChangedError: Another program has changed the store since.
            StoreError: The store refuses; the same command goes on.
        """
        mark = Recovery(RecoveryState.RECOVERING, plan.incarnations, self._brokers())
        guard: list[Compare] = [
            self._unchanged(RECOVERY_KEY),
            self._unchanged(INCARNATION_KEY),
            key_absent(CONTROLLER_KEY),
        ]
        result = await self._store.txn(guard, [Put(RECOVERY_KEY, mark.encode())])
        if not result.succeeded:
            raise TargetChangedError("the metadata store was changed by another program")
        mine = [value_equals(RECOVERY_KEY, mark.encode())]
        wanted = self._wanted(plan)
        gone = tuple(
            partitions_prefix(topic.replaces) for topic in plan.topics if topic.replaces is not None
        )
        await make_equal(
            self._store,
            wanted,
            guard=mine,
            is_ours=lambda key: key in wanted or key.startswith(gone),
        )
        done = Recovery(RecoveryState.RECOVERED, mark.replaces, mark.brokers)
        incarnation = format_uuid(fresh_id(self._environment.randomness)).encode()
        operations: list[Put | Delete] = [Delete(prefix, prefix=True) for prefix in BROKER_KEYS]
        operations += [Put(INCARNATION_KEY, incarnation), Put(RECOVERY_KEY, done.encode())]
        result = await self._store.txn(mine, operations)
        if not result.succeeded:
            raise TargetChangedError("the metadata store was changed by another program")

    # -- what there is ---------------------------------------------------------------------------

    async def _read(self) -> None:
        deadline_ms = self._environment.clock.monotonic_ms() + LEASES_END_MS
        while True:
            content = await whole_range(self._store, "")
            self._items = {item.key: item for item in content.items}
            self._revision = content.revision
            living = sorted(key.removeprefix(LIVE) for key in self._items if key.startswith(LIVE))
            if not living and CONTROLLER_KEY not in self._items:
                break
            if self._environment.clock.monotonic_ms() >= deadline_ms:
                raise FactsError(
                    f"broker {', '.join(living)} runs: stop all brokers of the cluster first"
                )
            await pause(self._environment.timer, LOOK_AGAIN_MS)
        self._image = ClusterImage.loaded(content.items, content.revision)
        found = self._items.get(RECOVERY_KEY)
        if found is not None:
            self._before = decode_recovery(found.value)

    @property
    def _incarnation(self) -> UUID | None:
        item = self._items.get(INCARNATION_KEY)
        return None if item is None else parse_uuid(item.value.decode())

    def _check(self) -> None:
        check_cluster(self._nodes, self._image)
        self._check_origin()
        here = {node.node_id: node for node in self._nodes}
        known = {
            node for node, facts in self._image.facts.items() if facts.registration is not None
        }
        for topic in self._image.topics.values():
            for partition in topic.partitions:
                known.update(partition.replicas)
        for node in self._nodes:
            known.update(node.brokers)
        known.update(self._before.brokers)
        missing = sorted(known - set(here) - self._absent)
        if missing:
            raise FactsError(
                f"the cluster has also broker{'s' * (len(missing) > 1)} "
                f"{', '.join(map(str, missing))}, of which no log directory is named. Name them "
                "all; what is lost for good is named with --without ID: records that only that "
                "broker had are lost then"
            )
        for node_id, facts in self._image.facts.items():
            if node_id not in here or facts.registration is None or node_id in self._absent:
                continue
            lacking = set(facts.registration.directories) - here[node_id].directory_ids
            if lacking:
                names = ", ".join(sorted(map(format_uuid, lacking)))
                raise FactsError(
                    f"broker {node_id} has also log directory {names}, and it is not named. Name "
                    f"it, or say --without {node_id}: what only that directory had is lost then"
                )

    def _check_origin(self) -> None:
        item = self._items.get(ORIGIN_KEY)
        origin: Origin | None = None if item is None else decode_origin(item.value)
        if origin is not None and origin.state is not OriginState.COPIED:
            raise FactsError(
                f"the store is in the middle of, or behind, a copy of node {origin.node_id}'s "
                "metadata: finish that with `varve metadata copy`"
            )

    def _evidence(self, plan: RecoveryPlan) -> list[str]:
        """Why the store cannot be gone on with."""
        found: list[str] = []
        stored = self._incarnation
        if self._before.state is RecoveryState.RECOVERING:
            found.append("a recovery was begun and not finished")
        if stored is None:
            found.append("the store is empty: it was lost, or emptied")
        history = ControllerHistory.of(self._items.values())
        for node in self._nodes:
            for directory in node.directories:
                named = parse_uuid(directory.incarnation)
                if stored is None:
                    continue
                if named == stored and directory.revision > self._revision:
                    found.append(
                        f"broker {node.node_id} has seen revision {directory.revision}, and the "
                        f"store is at {self._revision}: it was restored from a copy"
                    )
                elif (
                    named == stored
                    and directory.writer
                    and history.lacks(Write(directory.writer, directory.write))
                ):
                    found.append(
                        f"broker {node.node_id} has seen what the controller wrote at revision "
                        f"{directory.write}, and the store does not have it: it was restored from "
                        "a copy"
                    )
                elif named != stored and not self._before.accounts_for(
                    node.node_id, parse_uuid(directory.id), named
                ):
                    found.append(
                        f"{directory.path} of broker {node.node_id} belongs to incarnation "
                        f"{directory.incarnation}, and the store has {format_uuid(stored)}"
                    )
        return [*found, *self._evidence_of_logs(plan)]

    def _evidence_of_logs(self, plan: RecoveryPlan) -> list[str]:
        found = []
        if self._incarnation is not None and plan.rebuilt:
            found.append(f"the store does not know topics that have logs: {shown(plan.rebuilt)}")
        epochs = self._epochs()
        later = [
            f"{topic.name}-{partition.index}"
            for topic in self._image.topics.values()
            for partition in topic.partitions
            if epochs.get((topic.name, format_uuid(topic.topic_id), partition.index), -1)
            > partition.leader_epoch
        ]
        if later:
            found.append(f"logs have later leader epochs than the store: {shown(later)}")
        return found

    def _epochs(self) -> dict[tuple[str, str, int], int]:
        epochs: dict[tuple[str, str, int], int] = {}
        for node in self._nodes:
            for directory in node.directories:
                for one in directory.replicas:
                    key = (one.topic, one.topic_id, one.index)
                    epochs[key] = max(epochs.get(key, -1), one.epoch)
        return epochs

    # -- what is written -------------------------------------------------------------------------

    def _unchanged(self, key: str) -> Compare:
        item = self._items.get(key)
        return key_absent(key) if item is None else value_equals(key, item.value)

    def _brokers(self) -> dict[int, RecoveredBroker]:
        """All that were read, now or before: one that was absent then may be here now."""
        brokers = dict(self._before.brokers)
        for node in self._nodes:
            before = brokers.get(node.node_id, RecoveredBroker(0, frozenset()))
            brokers[node.node_id] = RecoveredBroker(
                node.epoch or before.epoch, before.directories | node.directory_ids
            )
        return brokers

    def _wanted(self, plan: RecoveryPlan) -> dict[str, bytes]:
        wanted = {CLUSTER_ID_KEY: plan.cluster_id.encode()}
        if FEATURES_KEY not in self._items:
            wanted[FEATURES_KEY] = encode_features(INITIAL)
        item = self._items.get(PRODUCER_IDS_KEY)
        next_id = 0 if item is None else decode_next_producer_id(item.value)
        # So that no id is given out twice: the time is above whatever was counted so far.
        now = self._environment.clock.now_ms() * 1000
        wanted[PRODUCER_IDS_KEY] = encode_next_producer_id(max(next_id, now))
        for topic in plan.topics:
            wanted[topic_key(topic.name)] = encode_topic(topic.topic_id)
            wanted.update(chunks(topic.topic_id, topic.partitions))
            if topic.settings is not None:
                resource = ConfigResource(ResourceType.TOPIC, topic.name)
                wanted[config_key(resource)] = encode_config(topic.settings)
        return wanted


def shown(names: Sequence[str]) -> str:
    """The first of some names, and how many there are more."""
    first = ", ".join(names[:SHOWN_MAX])
    return first if len(names) <= SHOWN_MAX else f"{first} and {len(names) - SHOWN_MAX} more"
