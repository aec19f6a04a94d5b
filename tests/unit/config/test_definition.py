"""One row per key is enough for model, check and documentation."""

import pydantic
import pytest

from config.definition import SECRET_SHOWN, Settings, Synonym, config_key, count
from config.errors import InvalidConfigError
from config.kinds import Text, WireType


class Sample(Settings):
    """A model with a few keys."""

    some_count: int = config_key("some.count", count(1, "things"), default=3, text="How many.")
    some_secret: str | None = config_key(
        "some.secret", Text(), default=None, text="Hidden.", secret=True, synonyms=("other",)
    )


def test_rows_come_in_order_of_declaration_under_kafka_names() -> None:
    """The model knows its keys."""
    assert list(Sample.rows()) == ["some.count", "some.secret"]
    row = Sample.rows()["some.count"]
    assert (row.field_name, row.default, row.text) == ("some_count", 3, "How many.")
    assert Sample.rows()["some.secret"].synonyms == (Synonym("other", 1),)


def test_defaults_are_not_counted_as_given() -> None:
    """What was set can be told from what was not."""
    assert Sample().model_fields_set == set()
    assert Sample(some_count=3).model_dump_set() == {"some_count": 3}


def test_settings_never_change() -> None:
    """A new configuration is a new object."""
    with pytest.raises(pydantic.ValidationError):
        Sample().some_count = 4


def test_types_are_strict_and_fields_known() -> None:
    """A text is no number, and a misspelt field is no field."""
    with pytest.raises(pydantic.ValidationError):
        Sample(some_count="4")  # type: ignore[arg-type]  # the refusal is what is tested
    with pytest.raises(pydantic.ValidationError):
        Sample(some_cuont=4)  # type: ignore[call-arg]  # the refusal is what is tested


def test_bounds_hold_for_texts_of_users_not_for_our_own_code() -> None:
    """Tests may build what users may not ask for."""
    with pytest.raises(InvalidConfigError, match="Value must be at least 1"):
        Sample.rows()["some.count"].parse("0")
    assert Sample(some_count=0).some_count == 0


def test_replaced_fields_join_those_given_before() -> None:
    """A copy keeps what was given."""
    sample = Sample(some_secret="x").with_values({"some_count": 9})
    assert sample.model_dump_set() == {"some_secret": "x", "some_count": 9}


def test_secrets_are_masked_where_they_are_shown() -> None:
    """Neither the value nor its length is seen; that none is set may be seen."""
    row = Sample.rows()["some.secret"]
    assert row.wire_type is WireType.PASSWORD
    assert row.shown("abc") == SECRET_SHOWN
    assert row.shown(None) is None
    assert row.format("abc") == "abc"


def test_a_nul_character_is_refused_in_one_line() -> None:
    """A path with one ended the start with a traceback; a secret is not shown."""
    for name in ("some.count", "some.secret"):
        with pytest.raises(InvalidConfigError) as refused:
            Sample.rows()[name].parse("a\0b")
        sentence = f"Invalid value for configuration {name}: it has a NUL character"
        assert str(refused.value) == sentence
