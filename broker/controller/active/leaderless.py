"""Partitions that no broker leads, in the controller's log: how many, and which brokers they need.

    in sync, or eligible, replicas that are away    one of them is enough
    none                                            the replicas whose logs are to be compared
                                                    (`broker.controller.active.log_recovery`)
    none, and no log is to be compared              an administrator decides

A line when that changes, and one when all are led again: an operator sees that a broker is ready,
and that partitions are offline, and nothing else says what would end it.
"""

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from broker.controller.active.partition_change import replicas_to_compare
from broker.controller.active.slices import Slices
from broker.controller.active.topic_terms import TopicTerms
from broker.controller.images.cluster_image import TopicImage
from broker.controller.images.partition_image import PartitionImage

LOGGER = logging.getLogger(__name__)

LINES_MAX: Final = 10
"""Of one change: partitions that need the same brokers share a line."""


class _Need(NamedTuple):
    """What would end it: one of these brokers, or all of them; of none an administrator."""

    brokers: tuple[int, ...]
    is_one_enough: bool


class LeaderlessReport:
    """See the module. On the loop's thread, by the active controller only."""

    def __init__(self) -> None:
        self._said: Counter[_Need] = Counter()

    async def look(
        self,
        leaderless: Iterable[tuple[TopicImage, PartitionImage]],
        terms: TopicTerms,
        slices: Slices,
    ) -> None:
        """Note which there are, once nothing can be planned for them."""
        needs: Counter[_Need] = Counter()
        firsts: dict[_Need, str] = {}
        for topic, partition in leaderless:
            await slices.turn()
            need = _need_of(topic, partition, terms)
            needs[need] += 1
            firsts.setdefault(need, f"{topic.name}-{partition.index}")
        before, self._said = self._said, needs
        if needs == before:
            return
        if not needs:
            LOGGER.info("all partitions have leaders again")
        for need, count in needs.most_common(LINES_MAX):
            LOGGER.warning(
                "partitions have no leader, they need %s partitions=%d first=%s",
                _in_words(need),
                count,
                firsts[need],
            )


def _need_of(topic: TopicImage, partition: PartitionImage, terms: TopicTerms) -> _Need:
    sources = partition.isr or partition.elr
    if sources:
        return _Need(tuple(sorted(sources)), is_one_enough=True)
    compared = replicas_to_compare(partition, terms.of(topic, partition))
    if compared is None:
        return _Need((), is_one_enough=False)
    return _Need(tuple(sorted(compared.needed or compared.members)), not compared.needed)


def _in_words(need: _Need) -> str:
    if not need.brokers:
        return "an unclean election by an administrator"
    names = ", ".join(map(str, need.brokers))
    if len(need.brokers) == 1:
        return f"broker {names}"
    return f"one of brokers {names}" if need.is_one_enough else f"all of brokers {names}"
