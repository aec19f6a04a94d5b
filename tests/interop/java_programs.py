"""The Java programs of this folder: compiled once, run with the jars of released Kafka."""

import os
import subprocess
import threading
from pathlib import Path

import pytest

from bench.kafka_release import KafkaRelease
from tests.fakes.kafka.maven_jars import BUILD, compiled

SOURCES = Path(__file__).parent / "java"
_BUILD = BUILD / "java-programs"


def command_of(release: KafkaRelease, program: str, *arguments: str) -> list[str]:
    """The command line that runs one of the programs, warnings on standard error."""
    classes = compiled(sorted(SOURCES.glob("*.java")), release.classpath, _BUILD)
    command = release.tool_command(program, arguments)
    at = command.index("-cp") + 1
    command[at] = f"{classes}{os.pathsep}{command[at]}"
    return command


class JavaScenarios:
    """One process that runs scenarios of `java/Scenarios.java`, some of them at a time."""

    def __init__(self, release: KafkaRelease, address: str, directory: Path) -> None:
        self._command = command_of(release, "Scenarios", address)
        self._log_path = directory / "java.log"
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._answers: dict[str, str] = {}
        self._changed = threading.Condition()
        self._ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def names(self) -> list[str]:
        """Scenarios there are."""
        command = [*self._command[:-1], "list"]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=60
        ).stdout.split()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            scenario, _, answer = line.rstrip("\n").partition(" ")
            with self._changed:
                self._answers[scenario] = answer
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def start(self, *scenarios: str) -> None:
        """Let scenarios begin, as many at a time as the program has threads."""
        assert self._process.stdin is not None
        self._process.stdin.write("".join(f"{scenario}\n" for scenario in scenarios))
        self._process.stdin.flush()

    def finish(self, scenario: str, timeout_s: float = 180.0) -> None:
        """Wait for a scenario that was started; fails the test with Java's stack trace."""
        with self._changed:
            self._changed.wait_for(lambda: scenario in self._answers or self._ended, timeout_s)
            answer = self._answers.get(scenario, f"no answer in {timeout_s} s")
        if answer != "passed":
            trace = answer.replace("\\n", "\n")
            pytest.fail(f"{trace}\nwarnings:\n{self.warnings(scenario)}")

    def warnings(self, scenario: str) -> str:
        """The last lines of what Java logged about a scenario."""
        name = scenario.replace("_", "-")
        lines = self._log_path.read_text(errors="replace").splitlines()
        return "\n".join([line for line in lines if name in line][-15:])

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
