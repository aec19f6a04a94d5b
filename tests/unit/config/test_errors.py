"""A refused start says everything that has to be corrected."""

from config.errors import ConfigLoadError, Mistake


def test_a_mistake_shows_key_value_problem_expectation_and_origin() -> None:
    """Whoever reads the line can correct the setting without a look at the documentation."""
    mistake = Mistake("num.partitions", "x", "Not a number", "integer, at least 1", "a:3")
    assert str(mistake) == "num.partitions=x: Not a number; expected integer, at least 1 (a:3)"


def test_a_mistake_without_value_and_expectation_is_short() -> None:
    """A key that is refused whatever its value says no more than that."""
    assert str(Mistake("foo", None, "unknown setting", "", "--set")) == (
        "foo: unknown setting (--set)"
    )


def test_all_mistakes_are_told_together() -> None:
    """One line each, under a line that counts them."""
    first = Mistake("a", None, "p", "", "x")
    error = ConfigLoadError((first, first))
    assert str(error).splitlines() == ["2 mistakes in the settings:", "  a: p (x)", "  a: p (x)"]
    assert str(ConfigLoadError((first,))).startswith("1 mistake in")
