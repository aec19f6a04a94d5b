"""What a recovered store is to hold, from what is left: an old copy, or nothing, and directories.

    topic in the store, its id in directories     kept, with its settings as the store has them
    in directories only                           made again; its settings are not known, so nothing
                                                  of it is deleted or compacted until they are set
    in the store only                             kept: it comes back empty, or was deleted since
    another id in the directories                 was deleted and made anew: the directories' one

    replicas       all brokers that have the log; then those of the store, up to their number, and
                   all that were not asked
    ISR            those whose log ends last: the greatest (leader epoch of the last batch, end).
                   Of all replicas it has everything that is committed; without one of them, perhaps
    leader epoch   above the greatest that any directory or the store has, by `EPOCH_MARGIN`: an
                   election without a record leaves no trace in a log, but clients have seen it

Nothing here deletes a log: what no partition names is set aside by its broker, as always.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from broker.controller.adoption import UNKNOWN_SETTINGS
from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.controller.topics.topics import automatic_topic
from broker.offline.directory_facts import FactsError, NodeFacts, ReplicaFacts
from config.broker import BrokerConfig
from storage.types.uuid_text import NIL, format_uuid, parse_uuid

EPOCH_MARGIN: Final = 100
"""Between the greatest leader epoch that was found and the one that partitions begin with."""


@dataclass(slots=True)
class PlannedTopic:
    """One topic as it will be.

    Attributes:
        settings: What is set on it; None: as the store has it.
        replaces: The id that the store has for this name; None: the same, or none.
    """

    name: str
    topic_id: UUID
    partitions: list[PartitionImage]
    settings: Mapping[str, str] | None = None
    replaces: UUID | None = None


@dataclass(slots=True)
class RecoveryPlan:
    """What will be written, and what is to be known of it. Lists are of names.

    Attributes:
        evidence: Why the store cannot be gone on with; empty: nothing shows that it is behind.
        rebuilt: Topics with settings that are not known.
        without_log: Topics of the store that no directory has anything of.
        deleted: Of those, topics whose directories were waiting for their removal.
        anew: Topics that were deleted and made anew since the copy.
        empty: Partitions that no directory has, of topics that some have: they begin empty.
        waiting: Partitions whose logs are with brokers that are not here: without a leader.
        aside: Logs that no partition will name.
        uncertain: Partitions of which a replica was not asked: it may have had more.
    """

    cluster_id: str
    incarnations: tuple[UUID, ...]
    evidence: list[str] = field(default_factory=list)
    topics: list[PlannedTopic] = field(default_factory=list)
    rebuilt: list[str] = field(default_factory=list)
    without_log: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    anew: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    uncertain: list[str] = field(default_factory=list)
    highest_epoch: int = -1


@dataclass(frozen=True, slots=True)
class _Found:
    node: int
    directory: UUID
    facts: ReplicaFacts


class Planner:
    """Makes a `RecoveryPlan`; `plan` once."""

    def __init__(
        self,
        image: ClusterImage,
        nodes: Sequence[NodeFacts],
        *,
        absent: Collection[int],
        settings: BrokerConfig,
    ) -> None:
        """Look at what there is.

        Args:
            image: Of the store as it is.
            nodes: Of the brokers whose directories are here.
            absent: Brokers that there are, and whose directories, or some of them, are not here.
            settings: For what internal topics are set to.
        """
        self._image = image
        self._absent = frozenset(absent)
        self._nodes = {node.node_id: node for node in nodes}
        self._settings = settings
        self._found: dict[str, list[_Found]] = {}
        self._going: dict[str, set[str]] = {}
        for node in nodes:
            for directory in node.directories:
                for one in directory.replicas:
                    if one.is_deleted:
                        self._going.setdefault(one.topic, set()).add(one.topic_id)
                        continue
                    found = _Found(node.node_id, parse_uuid(directory.id), one)
                    self._found.setdefault(one.topic, []).append(found)

    def plan(self, incarnations: Iterable[UUID]) -> RecoveryPlan:
        """What will be written.

        Args:
            incarnations: Of the stores that are replaced.
        """
        cluster_id = next(iter(self._nodes.values())).cluster_id
        plan = RecoveryPlan(cluster_id, tuple(dict.fromkeys(incarnations)))
        for name in sorted({*self._image.topics, *self._found}):
            self._plan_topic(plan, name, self._image.topics.get(name), self._found.get(name, []))
        return plan

    def _plan_topic(
        self, plan: RecoveryPlan, name: str, known: TopicImage | None, found: list[_Found]
    ) -> None:
        topic_id = _chosen_id(known, found)
        same = known if known is not None and known.topic_id == topic_id else None
        text = format_uuid(topic_id)
        mine = [one for one in found if one.facts.topic_id in (text, "")]
        plan.aside += [
            f"{name}-{one.facts.index} on broker {one.node} (topic id {one.facts.topic_id})"
            for one in found
            if one.facts.topic_id not in (text, "")
        ]
        planned = PlannedTopic(name, topic_id, [])
        if same is None:
            planned.settings = self._settings_of(name, mine)
            planned.replaces = known.topic_id if known is not None else None
            plan.rebuilt.append(name)
            if known is not None:
                plan.anew.append(name)
        elif not mine:
            plan.without_log.append(name)
            if text in self._going.get(name, ()):
                plan.deleted.append(name)
        count = max([one.facts.index + 1 for one in mine] + [len(same.partitions) if same else 0])
        by_index: dict[int, list[_Found]] = {}
        for one in mine:
            by_index.setdefault(one.facts.index, []).append(one)
        for index in range(count):
            before = same.partitions[index] if same and index < len(same.partitions) else None
            partition = self._partition(plan, name, index, before, by_index.get(index, []))
            planned.partitions.append(partition)
        spread = _replicas_of_others(planned.partitions, sorted(self._nodes))
        for index, partition in enumerate(planned.partitions):
            if not partition.replicas:
                # No broker has its log, and nothing says which ones should: as its neighbours.
                planned.partitions[index] = replace(partition, replicas=spread, isr=spread)
        plan.topics.append(planned)

    def _partition(
        self,
        plan: RecoveryPlan,
        name: str,
        index: int,
        before: PartitionImage | None,
        found: list[_Found],
    ) -> PartitionImage:
        highest = max(
            [one.facts.epoch for one in found] + [-1 if before is None else before.leader_epoch]
        )
        plan.highest_epoch = max(plan.highest_epoch, highest)
        wanted = () if before is None else before.target
        places = {one.node: one.directory for one in found}
        replicas = _replicas(wanted, places, self._absent)
        isr: tuple[int, ...] = ()
        elr: tuple[int, ...] = ()
        away = tuple(node for node in replicas if node in self._absent)
        if found:
            best = max(one.facts.log_end for one in found)
            ends = {one.node for one in found if one.facts.log_end == best}
            isr = tuple(node for node in replicas if node in ends)
            if away:
                plan.uncertain.append(f"{name}-{index}")
        elif away:
            elr = tuple(node for node in away if node in before.isr + before.elr) if before else ()
            elr = elr or away
            plan.waiting.append(f"{name}-{index}")
        else:
            isr = replicas
            if name not in plan.without_log:
                plan.empty.append(f"{name}-{index}")
        known = before.directory_on if before is not None else _nowhere
        directories = tuple(places.get(node) or known(node) or NIL for node in replicas)
        return PartitionImage(
            index,
            NO_LEADER,
            highest + EPOCH_MARGIN,
            (0 if before is None else before.partition_epoch) + EPOCH_MARGIN,
            replicas,
            isr,
            directories if any(one != NIL for one in directories) else (),
            elr,
        )

    def _settings_of(self, name: str, found: list[_Found]) -> Mapping[str, str]:
        configs = automatic_topic(name, ClusterImage.empty(), self._settings).configs
        own = {key: text for key, text in configs if text is not None}
        if own:
            return own
        if any(one.facts.has_lost_head for one in found):
            # Its history is in remote storage: without this its log start would be raised over it.
            return {**UNKNOWN_SETTINGS, "remote.storage.enable": "true"}
        return UNKNOWN_SETTINGS


def check_cluster(nodes: Sequence[NodeFacts], image: ClusterImage) -> None:
    """Refuse brokers of different clusters, or a broker that is named twice.

    Raises:
        FactsError: So it is.
    """
    if not nodes:
        raise FactsError("no log directories are named")
    counts = Counter(node.node_id for node in nodes)
    for node_id, count in counts.items():
        if count > 1:
            raise FactsError(
                f"broker {node_id} is named {count} times: name all its directories at once"
            )
    clusters = {node.cluster_id for node in nodes}
    if image.cluster_id:
        clusters.add(image.cluster_id)
    if len(clusters) > 1:
        raise FactsError(f"they are of different clusters: {', '.join(sorted(clusters))}")


def _nowhere(_node: int) -> UUID | None:
    return None


def _chosen_id(known: TopicImage | None, found: list[_Found]) -> UUID:
    counts = Counter(one.facts.topic_id for one in found if one.facts.topic_id)
    if not counts:
        if known is None:
            raise FactsError(
                f"{found[0].facts.topic}: none of its directories has a partition.metadata, so its "
                "topic id is not known: put one back"
            )
        return known.topic_id
    stored = "" if known is None else format_uuid(known.topic_id)
    # The store is older than what the directories say: of equal counts theirs is the later topic.
    text = max(counts, key=lambda one: (counts[one], one != stored, one))
    return parse_uuid(text)


def _replicas(
    wanted: tuple[int, ...], places: Mapping[int, UUID], absent: Collection[int]
) -> tuple[int, ...]:
    having = [node for node in wanted if node in places]
    having += sorted(node for node in places if node not in wanted)
    away = [node for node in wanted if node in absent and node not in places]
    rest = [node for node in wanted if node not in places and node not in absent]
    free = max(len(wanted) - len(having) - len(away), 0)
    return (*having, *away, *rest[:free])


def _replicas_of_others(partitions: Sequence[PartitionImage], nodes: list[int]) -> tuple[int, ...]:
    sets = [partition.replicas for partition in partitions if partition.replicas]
    return max(sets, key=len) if sets else tuple(nodes[:1])
