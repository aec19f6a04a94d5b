"""Option types take what they should and say what is wrong with the rest."""

import argparse
from collections.abc import Callable

import pytest

from cli.options import key_value, one_of, positive, topic_name, topic_partitions, whole_number


def test_values_are_read() -> None:
    """Each type's ordinary case and its edge."""
    assert (positive("1"), whole_number("0")) == (1, 0)
    assert key_value("a=b=c") == ("a", "b=c")
    assert key_value("a=") == ("a", "")
    assert topic_name("a.b-c_1") == "a.b-c_1"
    assert one_of(("Empty", "Stable"))("stable") == "Stable"
    assert topic_partitions("t") == ("t", None)
    assert topic_partitions("t:2,0,2") == ("t", (2, 0))


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (positive, "0"),
        (positive, "-1"),
        (positive, "x"),
        (whole_number, "-1"),
        (whole_number, "1.5"),
        (one_of(("Empty", "Stable")), "stab"),
        (key_value, "a"),
        (key_value, "=b"),
        (topic_name, "a b"),
        (topic_name, ".."),
        (topic_partitions, "t:"),
        (topic_partitions, "t:1,"),
        (topic_partitions, "t:a"),
        (topic_partitions, ":1"),
    ],
)
def test_other_text_is_refused(read: Callable[[str], object], text: str) -> None:
    """Before anything is asked of a broker."""
    with pytest.raises(argparse.ArgumentTypeError):
        read(text)
