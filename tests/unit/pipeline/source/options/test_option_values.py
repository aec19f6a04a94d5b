"""Texts of options: what is taken, and the rest of the sentence where it is not."""

from collections.abc import Callable
from uuid import UUID

import pytest

from pipeline.source.options import option_values as values
from storage.types.uuid_text import format_uuid

TOPIC_ID = UUID("3c5dd0d5-09bc-4a6a-9bcd-6d8e2d8eb5a9")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("134217728", 134217728),
        ("128m", 128 << 20),
        ("128 MiB", 128 << 20),
        ("128MB", 128 << 20),
        ("1g", 1 << 30),
        ("2 kib", 2048),
        ("7b", 7),
    ],
)
def test_sizes_are_written_as_in_spark_and_in_full(text: str, expected: int) -> None:
    assert values.size(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("15m", 900_000), ("15 min", 900_000), ("500", 500), ("500ms", 500), ("2h", 7_200_000)],
)
def test_durations_are_written_as_in_spark(text: str, expected: int) -> None:
    assert values.duration_ms(text) == expected


@pytest.mark.parametrize(
    ("parse", "text", "problem"),
    [
        (values.size, "12q", "no size"),
        (values.size, "0", "no size"),
        (values.size, "-1", "no size"),
        (values.size, "9999999t", "no size"),
        (values.duration_ms, "1 fortnight", "no duration"),
        (values.duration_ms, "", "no duration"),
        (values.positive, "0", "must be positive"),
        (values.positive, "1.5", "no whole number"),
        (values.whole, "9223372036854775808", "no whole number of 64 bits"),
        (values.whole, "٣", "no whole number"),
        (values.timestamp, "-1", "from 0"),
        (values.switch, "yes", "neither true nor false"),
        (values.text, "  ", "is empty"),
        (values.words, " , ", "names nothing"),
        (values.words, "a,b,a", "names a twice"),
        (values.identifier, "nonsense", "no topic's identifier"),
        (values.key_pairs, "a", "id=path"),
        (values.key_pairs, "a=", "id=path"),
        (values.key_pairs, "a=x,a=y", "two files for the key pair a"),
    ],
)
def test_what_is_wrong_is_said(parse: Callable[[str], object], text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse(text)


def test_identifiers_are_taken_in_both_spellings() -> None:
    """Kafka's tools print one, most others the other."""
    assert values.identifier(str(TOPIC_ID)) == TOPIC_ID
    assert values.identifier(format_uuid(TOPIC_ID)) == TOPIC_ID


def test_one_of_some_names_is_read_without_regard_to_case() -> None:
    parse = values.one_of("error", "latest")
    assert parse(" LATEST ") == "latest"
    with pytest.raises(ValueError, match="must be one of error, latest"):
        parse("newest")


def test_key_pairs_are_paths_by_id() -> None:
    """Only the first `=` divides: paths may have more of them."""
    assert values.key_pairs("a=/k/a.pem, b=/k/b=1.pem") == {"a": "/k/a.pem", "b": "/k/b=1.pem"}
