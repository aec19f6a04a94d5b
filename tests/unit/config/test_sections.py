"""The sections of broker settings share no key and no field."""

from collections import Counter

import pytest

from config.broker import SECTIONS
from config.definition import Settings


def test_a_key_belongs_to_one_section() -> None:
    """The joined model has one field for it."""
    names = Counter(name for section in SECTIONS for name in section.rows())
    assert [name for name, times in names.items() if times > 1] == []


@pytest.mark.parametrize("section", SECTIONS)
def test_every_default_can_be_written_and_read_back(section: type[Settings]) -> None:
    """What the documentation shows as default may be put into a file."""
    for row in section.rows().values():
        text = row.format(row.default)
        if text:
            assert row.parse(text) == row.default


@pytest.mark.parametrize("section", SECTIONS)
def test_a_field_is_named_as_its_key(section: type[Settings]) -> None:
    """Searching for `log.dirs` and for `log_dirs` finds both."""
    assert {row.field_name for row in section.rows().values()} == set(section.model_fields)
