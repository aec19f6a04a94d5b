"""Placement as Kafka's StripedReplicaPlacer: spread over racks, then over brokers."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.images.broker_records import BrokerImage
from broker.controller.topics.placement import Placer
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from storage.environment.randomness import SeededRandomness

RACKS = st.lists(
    st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans(), st.booleans()),
    min_size=1,
    max_size=9,
)


class First(SeededRandomness):
    """Begins everywhere with the first."""

    def below(self, bound: int) -> int:
        return 0


def brokers(*racks: str | None, fenced: tuple[int, ...] = ()) -> dict[int, BrokerImage]:
    return {
        node: BrokerImage(node, {}, rack, is_fenced=node in fenced)
        for node, rack in enumerate(racks, 1)
    }


def test_racks_alternate_and_brokers_of_a_rack_take_turns() -> None:
    """As the picture in the module."""
    placer = Placer(brokers("a", "a", "b", "b", "c", "c"), First(0))
    assert [placer.place(3) for _ in range(3)] == [(1, 3, 5), (4, 6, 2), (5, 1, 3)]


def test_a_second_broker_of_a_rack_only_after_one_of_each() -> None:
    placer = Placer(brokers("a", "a", "a", "b"), First(0))
    first = placer.place(3)
    assert first == (1, 4, 2)


def test_fenced_brokers_come_last_and_never_lead() -> None:
    placer = Placer(brokers("a", "b", "c", fenced=(1, 2)), First(0))
    assert [placer.place(3) for _ in range(2)] == [(3, 1, 2), (3, 2, 1)]


def test_too_few_brokers() -> None:
    for there in (brokers(None), {}):
        with pytest.raises(ApiError) as refused:
            Placer(there, First(0)).place(2)
        assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    with pytest.raises(ApiError) as refused:
        Placer(brokers(None, fenced=(1,)), First(0)).place(1)
    assert refused.value.message is not None
    assert refused.value.message.endswith("All brokers are currently fenced.")


@given(RACKS, st.integers(1, 5), st.integers(1, 40), st.integers())
def test_placements_are_sane(
    racks: list[tuple[str | None, bool, bool]], factor: int, count: int, seed: int
) -> None:
    """Distinct brokers, an unfenced leader, as many racks as there can be, leaders balanced."""
    there = {
        node: BrokerImage(node, {}, rack, is_fenced=is_fenced, is_draining=is_draining)
        for node, (rack, is_fenced, is_draining) in enumerate(racks, 1)
    }
    able = [n for n, one in there.items() if not one.is_fenced and not one.is_draining]
    placer = Placer(there, SeededRandomness(seed))
    if factor > len(there) or not able:
        return
    led: Counter[int] = Counter()
    for _ in range(count):
        replicas = placer.place(factor)
        assert len(set(replicas)) == factor
        assert replicas[0] in able
        used = Counter(there[node].rack for node in replicas)
        all_racks = Counter(one.rack for one in there.values())
        assert len(used) == min(factor, len(all_racks))
        led[replicas[0]] += 1
    if len({there[node].rack for node in able}) == 1 and len({r for r, _, _ in racks}) == 1:
        assert max(led.values()) - min(led[node] for node in able) <= 2
