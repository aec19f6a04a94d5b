"""When the end of a lease is believed: soon, unless the store ends leases before their time."""

from dataclasses import replace

from broker.controller.active.lease_ends import BELIEVED_AFTER_MS, PATIENCE_MS, LeaseEnds
from broker.controller.images.cluster_image import BrokerFacts, BrokerImage, ClusterImage
from tests.fakes.clock import ManualClock


def image(live: set[int], brokers: int = 5) -> ClusterImage:
    ids = range(1, brokers + 1)
    return replace(
        ClusterImage.empty(),
        brokers={node: BrokerImage(node, {}, is_live=node in live) for node in ids},
    )


def ends_of(*steps: tuple[float, set[int]], me: int = 1, brokers: int = 5) -> LeaseEnds:
    """After images at these times, each with the brokers that hold a lease."""
    clock = ManualClock()
    ends = LeaseEnds(me, clock)
    old = image(set(range(1, brokers + 1)), brokers)
    for at_ms, live in steps:
        clock.advance(at_ms - clock.monotonic_ms())
        new = image(live, brokers)
        ends.see(old, new)
        old = new
    return ends


def test_one_end_is_believed_after_a_moment() -> None:
    ends = ends_of((100, {1, 2, 3, 4}))
    assert ends.believed_at_ms(5) == 100 + BELIEVED_AFTER_MS
    assert ends.early_ends == 0


def test_half_of_them_within_half_a_second_are_not_believed() -> None:
    """From the one that makes it half."""
    ends = ends_of((100, {1, 2, 3, 4}), (300, {1, 2, 3}), (550, {1, 2}))
    assert ends.believed_at_ms(5) == 550 + PATIENCE_MS
    assert ends.early_ends == 1


def test_ends_far_apart_are_not_counted_together() -> None:
    ends = ends_of((100, {1, 2, 3, 4}), (700, {1, 2, 3}), (1300, {1, 2}))
    assert ends.early_ends == 0
    assert ends.believed_at_ms(3) == 1300 + BELIEVED_AFTER_MS


def test_the_own_lease_ends_before_its_time_or_this_would_not_run() -> None:
    ends = ends_of((100, {2, 3, 4, 5}))
    assert ends.believed_at_ms(1) == 100 + PATIENCE_MS


def test_one_of_two_brokers_is_not_half_of_the_cluster() -> None:
    """Else a cluster of two would wait at each death."""
    ends = ends_of((100, {1}), brokers=2)
    assert ends.early_ends == 0


def test_a_lease_that_is_back_begins_anew() -> None:
    """Its next end counts from then."""
    ends = ends_of((100, {1, 2, 3, 4}), (120, {1, 2, 3, 4, 5}), (5000, {1, 2, 3, 4}))
    assert ends.believed_at_ms(5) == 5000 + BELIEVED_AFTER_MS


def test_ends_by_evidence_are_no_early_ends() -> None:
    """They came with what was said of their brokers; what is left of that belongs to others."""
    clock = ManualClock()
    clock.advance(100)
    said = {2: BrokerFacts(suspected_by=((1, 7),)), 3: BrokerFacts(suspected_by=((1, 8), (3, 8)))}
    old = replace(image({1, 2, 3}, 3), facts=said)
    for facts, early in (({}, 0), (said, 1), ({2: BrokerFacts(), 3: said[3]}, 0)):
        ends = LeaseEnds(1, clock)
        ends.see(old, replace(image({1}, 3), facts=facts))
        assert ends.early_ends == early
        assert ends.believed_at_ms(2) == 100 + (PATIENCE_MS if early else BELIEVED_AFTER_MS)


def test_a_broker_that_says_that_it_lives_is_no_evidence_against_it() -> None:
    """Its word lies under its own lease, and goes with it."""
    said = {node: BrokerFacts(suspected_by=((node, 7),)) for node in (2, 3)}
    ends = LeaseEnds(1, ManualClock())
    ends.see(replace(image({1, 2, 3}, 3), facts=said), image({1}, 3))
    assert ends.early_ends == 1
