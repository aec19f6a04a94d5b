"""Which names a topic may have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.images.topic_names import collision_key, may_collide, name_problem

LEGAL = st.text("abcXYZ019._-", min_size=1, max_size=249).filter(lambda n: n not in (".", ".."))


@given(LEGAL)
def test_legal_names(name: str) -> None:
    """Letters, digits, dot, underscore, dash, up to 249 of them."""
    assert name_problem(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a" * 250, f"the length of '{'a' * 250}' is longer than the max allowed length 249"),
        (
            "a b",
            "'a b' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'",
        ),
        (
            "tür",
            "'tür' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'",
        ),
    ],
)
def test_refused_names_get_kafkas_sentence(name: str, reason: str) -> None:
    """Tools and users search for these texts."""
    assert name_problem(name) == f"Topic name is invalid: {reason}"


@pytest.mark.parametrize("name", ["a/b", "a\n", "a\x00", "../x", "a:b", "a\u0661"])
def test_names_that_would_leave_the_directory_are_refused(name: str) -> None:
    """A topic's name becomes a directory's."""
    assert name_problem(name) is not None


def test_dot_and_underscore_collide() -> None:
    """They are one character in metric names."""
    assert collision_key("a.b_c") == collision_key("a_b.c")
    assert may_collide("a.b")
    assert may_collide("a_b")
    assert not may_collide("a-b")
