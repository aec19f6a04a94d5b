"""The checked-in modules are what the generator writes."""

from protocol.codegen.__main__ import MESSAGES, render


def test_messages_are_fresh() -> None:
    """`make codegen` changes nothing; no module is missing or left over."""
    expected = render()
    present = {path.name: path.read_text() for path in MESSAGES.glob("*.py")}
    del present["__init__.py"]
    assert present.keys() == expected.keys()
    stale = [name for name, text in expected.items() if present[name] != text]
    assert stale == [], "run `make codegen`"


def test_size_stays_reasonable() -> None:
    """Versions with one layout share their functions: below 3 MB in all."""
    assert sum(len(text) for text in render().values()) < 3_000_000
