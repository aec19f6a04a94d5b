"""A conflict names the key to change."""

from config.conflict import Conflict


def test_what_is_expected_may_be_left_out() -> None:
    """Where the problem says it."""
    assert Conflict("a", "is wrong") == ("a", "is wrong", "")
