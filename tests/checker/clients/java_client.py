"""The released Java client as a process that obeys commands: `java/CheckerClient.java`.

One JSON object a line each way; what an answer means for the history is decided in `java_work` and
`share_work`. It ends when this process does, however that ends.
"""

import hashlib
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bench.kafka_release import KafkaRelease
from tests.checker.clients.client_process import Worker

SOURCE: Final = Path(__file__).parent / "java" / "CheckerClient.java"
_BUILD: Final = Path(__file__).resolve().parents[3] / ".build" / "checker-java"

ANSWER_S: Final = 35.0
"""The client's own time-outs are shorter: who takes longer hangs."""

Settings = Mapping[str, str]


class JavaError(Exception):
    """What the Java client threw; `kind` is the exception's class."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class JavaNotCompiledError(RuntimeError):
    """The program could not be compiled; the text is the compiler's."""


def compiled(release: KafkaRelease) -> Path:
    """The folder of class files; compiles when the source has changed."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    target = _BUILD / digest
    if target.exists():
        return target
    javac = shutil.which("javac")
    if javac is None:
        raise JavaNotCompiledError("`javac` was not found: install a JDK (default-jdk-headless)")
    fresh = _BUILD / f"{digest}.{os.getpid()}"
    command = [javac, "-nowarn", "-d", str(fresh), "-cp", release.classpath, str(SOURCE)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    if result.returncode != 0:
        raise JavaNotCompiledError(result.stderr)
    try:
        fresh.rename(target)
    except OSError:  # somebody else was first
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def command_of(release: KafkaRelease, address: str) -> list[str]:
    """The command line of the program; what the virtual machine has to say goes to its log."""
    command = release.tool_command("CheckerClient", [address])
    at = command.index("-cp")
    command[at + 1] = f"{compiled(release)}{os.pathsep}{command[at + 1]}"
    return [*command[:at], "-XX:+DisplayVMOutputToStderr", *command[at:]]


class JavaClient:
    """The process of one worker; it inherits the worker's log."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._process = subprocess.Popen(
            command_of(KafkaRelease.resolve(), worker.options.address),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout
        self._buffer = b""

    def ask(self, do: str, **task: Any) -> dict[str, Any]:
        """Have it do something.

        Raises:
            JavaError: What the client threw.
        """
        self._worker.step()
        self._stdin.write(json.dumps({"do": do, **task}).encode() + b"\n")
        self._stdin.flush()
        answer: dict[str, Any] = json.loads(self._line(do))
        if "error" in answer:
            raise JavaError(answer["error"], answer["message"])
        return answer

    def _line(self, do: str) -> bytes:
        deadline = time.monotonic() + ANSWER_S
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._stdout], [], [], left)[0]:
                self._hang()
            chunk = os.read(self._stdout.fileno(), 1 << 20)
            if not chunk:
                raise EOFError(f"the Java client ended with {self._process.wait()} in {do}")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _hang(self) -> None:
        """Java's stacks and ours into the log, then the end: see `Worker.step`."""
        self._process.send_signal(signal.SIGQUIT)
        time.sleep(1.0)
        signal.raise_signal(signal.SIGALRM)

    @property
    def pid(self) -> int:
        """Of the Java process."""
        return self._process.pid

    def let_go(self) -> None:
        """Tell it nothing any more, as if this process had ended."""
        self._stdin.close()

    def wait(self, timeout_s: float) -> int:
        """Wait for its end; returns the exit code."""
        code = self._process.wait(timeout_s)
        self._stdout.close()
        return code

    def close(self) -> None:
        """End it, without asking the client to."""
        self.let_go()
        self._process.kill()
        self.wait(30.0)
