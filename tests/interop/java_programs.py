"""The Java programs of this folder: compiled once, run with the jars of released Kafka."""

import hashlib
import os
import queue
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from bench.kafka_release import KafkaRelease

SOURCES = Path(__file__).parent / "java"
_BUILD = Path(__file__).resolve().parents[2] / ".build" / "java-programs"


def compiled(release: KafkaRelease) -> Path:
    """The folder of class files; compiles when a source has changed."""
    sources = sorted(SOURCES.glob("*.java"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    target = _BUILD / digest
    if target.exists():
        return target
    javac = shutil.which("javac")
    if javac is None:
        pytest.fail("`javac` was not found: install a JDK (Debian: default-jdk-headless)")
    shutil.rmtree(_BUILD, ignore_errors=True)
    fresh = _BUILD / f"{digest}.{os.getpid()}"
    command = [javac, "-nowarn", "-d", str(fresh), "-cp", release.classpath, *map(str, sources)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert result.returncode == 0, result.stderr
    fresh.rename(target)
    return target


def command_of(release: KafkaRelease, program: str, *arguments: str) -> list[str]:
    """The command line that runs one of the programs, warnings on standard error."""
    classes = compiled(release)
    command = release.tool_command(program, arguments)
    at = command.index("-cp") + 1
    command[at] = f"{classes}{os.pathsep}{command[at]}"
    return command


class JavaScenarios:
    """One process that runs scenarios of `java/Scenarios.java`, each in a line."""

    def __init__(self, release: KafkaRelease, address: str, directory: Path) -> None:
        self._command = command_of(release, "Scenarios", address)
        self._log = directory / "java.log"
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str] = queue.Queue()

    def names(self) -> list[str]:
        """Scenarios there are."""
        command = [*self._command[:-1], "list"]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=60
        ).stdout.split()

    def _started(self) -> "subprocess.Popen[str]":
        if self._process is None or self._process.poll() is not None:
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
            self._answers = queue.Queue()
            threading.Thread(
                target=self._read, args=(self._process, self._answers), daemon=True
            ).start()
        return self._process

    @staticmethod
    def _read(process: "subprocess.Popen[str]", answers: "queue.Queue[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            answers.put(line.rstrip("\n"))
        answers.put("failed: the process ended")

    def run(self, scenario: str, name: str, timeout_s: float = 120.0) -> None:
        """Run one scenario; fails the test with Java's stack trace."""
        process = self._started()
        assert process.stdin is not None
        process.stdin.write(f"{scenario} {name}\n")
        process.stdin.flush()
        try:
            answer = self._answers.get(timeout=timeout_s)
        except queue.Empty:
            self.close()
            pytest.fail(f"{scenario} took more than {timeout_s} s\n{self.warnings()}")
        if answer != "passed":
            pytest.fail(answer.replace("\\n", "\n") + f"\nwarnings:\n{self.warnings()}")

    def warnings(self) -> str:
        """The last lines of what Java logged."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
