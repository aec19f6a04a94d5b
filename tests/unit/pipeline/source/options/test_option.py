"""One option: its name, and how its text is read."""

from pipeline.source.options.option import GivenOptions, Option, unknown_option
from pipeline.source.options.option_values import positive

TASKS = Option("minPartitions", "-", "Tasks.", positive)


def test_names_are_looked_up_without_regard_to_case() -> None:
    """Spark hands them over in lower case."""
    for name in ("minpartitions", "minPartitions", "MINPARTITIONS"):
        assert GivenOptions({name: "7"}).read(TASKS) == 7


def test_what_is_not_given_is_none() -> None:
    options = GivenOptions({})
    assert options.read(TASKS) is None
    assert options.read_or(TASKS, 3) == 3
    assert not options.has(TASKS)
    assert options.mistakes == []


def test_a_mistake_names_the_option_as_it_is_written() -> None:
    options = GivenOptions({"minpartitions": "0"})
    assert options.read_or(TASKS, 3) == 3
    assert options.mistakes == ["minPartitions is 0 and must be positive"]


def test_an_unknown_name_is_told_with_the_one_that_is_meant() -> None:
    known = ["minPartitions", "includeHeaders"]
    assert unknown_option("minpartition", known) == (
        "minpartition is no option of varve; is minPartitions meant?"
    )
    assert unknown_option("colour", known) == "colour is no option of varve"


def test_a_mistake_in_a_secret_does_not_tell_it() -> None:
    """Parsers quote what they were given."""
    secret = Option("store.secret", "-", "Secret.", positive, secret=True)
    options = GivenOptions({"store.secret": "a-secret"})
    assert options.read(secret) is None
    assert options.mistakes == ["store.secret cannot be read"]
