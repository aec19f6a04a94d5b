"""What the nemesis leaves in the history."""

from pathlib import Path
from typing import Any

import pytest

from tests.checker.faults.nemesis import Nemesis
from tests.checker.history import Recorder, read_history


class Everything:
    """Node, proxy and clients that let all be done to them."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_: None


def test_kills_are_noted_and_whether_answers_may_be_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.checker.faults.nemesis.time.sleep", lambda _: None)
    path, anything = tmp_path / "history", Everything()
    faults = Nemesis(
        anything,
        anything,  # type: ignore[arg-type]  # a stand-in
        anything,
        faults=("kill", "proxy"),
        seed=1,
        recorder=Recorder(path, "nemesis"),
    )
    faults._kill()
    faults._disturb()
    faults._kill()
    assert [(op.f, op.value) for op in read_history([path])] == [
        ("kill", {"clean": True}),
        ("kill", {"clean": False}),
    ]
    assert faults.done == {"kill": 2, "proxy": 1}
