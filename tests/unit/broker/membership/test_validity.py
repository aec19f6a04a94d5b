"""A validity is granted, extended while it lasts, and once over extended by nothing."""

import math

from broker.membership.validity import Validity


def test_nothing_is_valid_before_a_grant() -> None:
    validity = Validity()
    assert validity.until_ms == -math.inf
    assert not validity.extend(0, 1_000, 1)


def test_it_is_extended_while_it_lasts() -> None:
    validity = Validity()
    number = validity.grant(100)
    assert validity.extend(number, 200, 100)
    assert validity.until_ms == 200


def test_one_that_has_passed_is_not_extended() -> None:
    validity = Validity()
    number = validity.grant(100)
    assert not validity.extend(number, 200, 101)
    assert validity.until_ms == 100


def test_an_earlier_grant_extends_nothing() -> None:
    """A renewal that is answered late, in another thread, of a lease that was given up."""
    validity = Validity()
    old = validity.grant(100)
    validity.end()
    assert not validity.extend(old, 200, 50)
    validity.grant(150)
    assert not validity.extend(old, 200, 50)
    assert validity.until_ms == 150


def test_only_the_newest_grant_is_ended() -> None:
    """A thread finds the lease of an earlier one lost."""
    validity = Validity()
    old = validity.grant(100)
    new = validity.grant(200)
    validity.end(old)
    assert validity.until_ms == 200
    validity.end(new)
    assert validity.until_ms == -math.inf
