"""Imports are put out of the collector's reach, once for each time that there are new ones."""

import gc
import sys
from types import ModuleType

import pytest

from pipeline.source.settled import settle


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often it was done, in place of doing it."""
    calls: list[int] = []
    monkeypatch.setattr(gc, "freeze", lambda: calls.append(1))
    monkeypatch.setattr("pipeline.source.settled._known", 0)
    return calls


def test_the_second_task_of_a_worker_finds_it_done(frozen: list[int]) -> None:
    settle()
    settle()
    assert len(frozen) == 1


def test_what_is_imported_later_is_put_there_too(
    frozen: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    settle()
    monkeypatch.setitem(sys.modules, "a_client_opened_late", ModuleType("a_client_opened_late"))
    settle()
    assert len(frozen) == 2


def test_garbage_is_collected_before(frozen: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "collect", lambda: frozen.append(0))
    settle()
    assert frozen == [0, 1]
