"""The table of known ways to lose data names tests that exist."""

import re

from bench.node import REPOSITORY

DEFINED = re.compile(r"^(?:async )?def (test_\w+)\(", re.MULTILINE)


def test_every_test_of_the_table_exists() -> None:
    page = (REPOSITORY / "docs" / "checking.md").read_text(encoding="utf-8")
    table = page.partition("### Known ways to lose data")[2].partition("###")[0]
    named = set(re.findall(r"`(test_\w+)`", table))
    defined = {
        name
        for path in (REPOSITORY / "tests").rglob("test_*.py")
        for name in DEFINED.findall(path.read_text(encoding="utf-8"))
    }
    assert len(named) >= 20
    assert named <= defined
