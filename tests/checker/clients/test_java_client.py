"""The Java client's process: answers, errors, its end."""

import os
from pathlib import Path

import pytest

from tests.checker.clients.client_process import Worker, WorkerOptions
from tests.checker.clients.java_client import JavaClient, JavaError

pytestmark = pytest.mark.interop


class Quiet(Worker):
    """Without the signals of a process of its own."""

    def __init__(self) -> None:
        self.options = WorkerOptions("jsend", 0, "jsend0.1", os.devnull, "127.0.0.1:1", 1)

    def step(self) -> None:
        """Nobody watches."""


def test_obeys_reports_and_ends() -> None:
    java = JavaClient(Quiet())
    assert java.ask("close") == {"said": []}
    with pytest.raises(JavaError, match="NullPointerException"):
        java.ask("begin")
    settings = {"transactional.id": "t", "max.block.ms": "50"}
    with pytest.raises(JavaError) as refused:
        java.ask("producer", settings=settings)
    assert refused.value.kind == "TimeoutException"
    # Each client is made with settings that it takes.
    java.ask("consumer", settings={"group.id": "g"}, topics=["t"])
    java.ask("share", settings={"group.id": "g"}, topics=["t"])
    assert java.ask("sharePoll", ms=1) == {"records": [], "said": []}
    pid = java.pid
    java.close()
    assert not Path(f"/proc/{pid}").exists()


def test_ends_with_its_master() -> None:
    java = JavaClient(Quiet())
    java.ask("close")
    java.let_go()
    assert java.wait(20.0) == 0
