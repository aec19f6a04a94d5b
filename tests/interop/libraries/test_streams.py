"""Kafka Streams, exactly once, while broker and application are killed.

Part of `make test-clients`, which builds it first (`.ci/clients`).
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.node import OwnedNode
from tests.interop.conftest import COORDINATOR_PROPERTIES, new_node
from tests.interop.libraries.test_foreign_clients import BUILT, REPOSITORY, built

pytestmark = pytest.mark.clients

APPLICATION = "words"
COUNT = 20_000
PAUSE_MS = 120
BROKER_KILLS = 3
PATIENCE_S = 120


def command(*arguments: str | Path) -> list[str]:
    """Of the Java program, errors on standard error."""
    classes = built(BUILT / "streams" / "classes")
    classpath = f"{classes}{os.pathsep}{classes.parent / 'libs'}/*"
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return ["java", "-Xmx300m", quiet, "-cp", classpath, "WordCount", *map(str, arguments)]


@contextmanager
def counting(node: OwnedNode, directory: Path) -> Iterator[None]:
    """One instance of the application, killed in the end."""
    log_path = directory / "application.log"
    with log_path.open("ab") as log:
        arguments = command("count", node.address, APPLICATION, directory / "state")
        process = subprocess.Popen(arguments, stdout=log, stderr=log)
    try:
        yield
        assert process.poll() is None, log_path.read_text()[-5000:]
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_words_are_counted_once(tmp_path: Path, ran: Callable[[str], None]) -> None:
    version = re.search(r"^streams=(.*)$", (REPOSITORY / ".ci" / "clients").read_text(), re.M)
    assert version is not None
    ran(f"Kafka Streams {version[1]}")
    node = new_node(tmp_path / "broker", COORDINATOR_PROPERTIES)
    node.start()
    try:
        subprocess.run(command("create", node.address, APPLICATION), check=True, timeout=60)
        feed = command("feed", node.address, APPLICATION, str(COUNT), str(PAUSE_MS))
        with subprocess.Popen(feed) as feeder:
            for _ in range(BROKER_KILLS):
                with counting(node, tmp_path):
                    time.sleep(5)
                    node.kill()
                    node.start()
                    time.sleep(2)
            with counting(node, tmp_path):
                assert feeder.wait(PATIENCE_S) == 0
                check = command(
                    "check", node.address, APPLICATION, str(COUNT), str(PATIENCE_S * 1000)
                )
                result = subprocess.run(
                    check, capture_output=True, text=True, check=False, timeout=2 * PATIENCE_S
                )
                assert result.returncode == 0, f"{result.stdout}{result.stderr}{node.log_tail()}"
    finally:
        node.stop()
