"""The checked-in modules are what the generator writes."""

from collections.abc import Mapping

import pytest

from protocol.codegen.__main__ import MESSAGES, render


@pytest.fixture(scope="module")
def rendered() -> Mapping[str, str]:
    """Texts of all modules, by name; to write them takes a second."""
    return render()


def test_messages_are_fresh(rendered: Mapping[str, str]) -> None:
    """`make codegen` changes nothing; no module is missing or left over."""
    present = {path.name: path.read_text() for path in MESSAGES.glob("*.py")}
    del present["__init__.py"]
    assert present.keys() == rendered.keys()
    stale = [name for name, text in rendered.items() if present[name] != text]
    assert stale == [], "run `make codegen`"


def test_size_stays_reasonable(rendered: Mapping[str, str]) -> None:
    """Versions with one layout share their functions: below 3 MB in all."""
    assert sum(len(text) for text in rendered.values()) < 3_000_000
