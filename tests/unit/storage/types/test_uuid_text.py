"""Identifiers in Kafka's text form."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.types.uuid_text import NIL, format_uuid, parse_uuid


@given(st.uuids())
def test_round_trip(uuid: UUID) -> None:
    """22 characters, and back."""
    assert len(format_uuid(uuid)) == 22
    assert parse_uuid(format_uuid(uuid)) == uuid


def test_known_texts() -> None:
    """Kafka's ZERO_UUID, and one with both special characters."""
    assert format_uuid(NIL) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert format_uuid(UUID(int=2**128 - 1)) == "_____________________w"


@pytest.mark.parametrize("text", ["", "A" * 21, "A" * 23, "!" * 22, "é" * 22, "A" * 20 + "=="])
def test_other_texts_are_refused(text: str) -> None:
    """Neither padding nor other characters."""
    with pytest.raises(ValueError, match="identifier"):
        parse_uuid(text)
