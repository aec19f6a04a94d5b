"""One JVM that runs Kafka's tools, and Java programs of this folder, for a whole session.

To start a JVM and load Kafka's classes takes seconds; what most tools do takes a tenth of one. The
tools' own main methods run, unmodified: see `java/ToolServer.java` for what an exit, a standard
stream and a shutdown hook are there.
"""

import base64
import itertools
import subprocess
import threading
from pathlib import Path

from bench.kafka_release import KafkaRelease, KafkaReleaseError
from tests.interop.java_programs import command_of

OPTIONS = ("-Xmx512M", "-Dfile.encoding=UTF-8", "--add-opens=java.base/java.lang=ALL-UNNAMED")
"""What several tools at a time need, texts as Kafka writes them, and the JVM's shutdown hooks."""


class ToolServer:
    """Runs tools as `KafkaRelease.tool` does, without a process for each.

    The process starts with the first tool, and anew after one that was killed for its time.
    """

    def __init__(self, release: KafkaRelease, directory: Path) -> None:
        self._release = release
        self._log_path = directory / "tools.log"
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._jvm: _Jvm | None = None

    def tool(
        self,
        main_class: str,
        *arguments: str,
        text: str | None = None,
        timeout_s: float = 180.0,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's tools to its end.

        Args:
            main_class: As the shell script of the tool names it, or a class of `java/`.
            arguments: The tool's own options.
            text: Goes to its standard input.
            timeout_s: After this the JVM is killed, with all that runs in it, and
                `subprocess.TimeoutExpired` raised.
            check: Raise `KafkaReleaseError` with the tool's output when it exits with another
                code than 0.
        """
        with self._lock:
            if self._jvm is None or not self._jvm.is_running:
                self._jvm = _Jvm(self._release, self._log_path)
            jvm, number = self._jvm, str(next(self._numbers))
        command = [main_class, *arguments]
        answer = jvm.run(number, [text or "", *command], timeout_s)
        if answer is None:
            log = self._log_path.read_text(errors="replace")[-5000:]
            raise subprocess.TimeoutExpired(command, timeout_s, stderr=log)
        code, stdout, stderr = answer
        if check and code != 0:
            raise KafkaReleaseError(f"{' '.join(command)} exited with {code}:\n{stdout}\n{stderr}")
        return subprocess.CompletedProcess(command, code, stdout, stderr)

    def ask(self, program: str, questions: list[str]) -> list[str]:
        """What a program of `java/` answers: a line for each line that it reads."""
        said = self.tool(program, text="\n".join(questions) + "\n", timeout_s=120).stdout
        return said.splitlines()

    def close(self) -> None:
        """End the process."""
        if self._jvm is not None:
            self._jvm.kill()


class _Jvm:
    """A running `ToolServer`, and the runs that wait for their answer."""

    def __init__(self, release: KafkaRelease, log_path: Path) -> None:
        command = command_of(release, "ToolServer")
        at = command.index("-cp")
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [*command[:at], *OPTIONS, *command[at:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="ascii",
            )
        self._answers: dict[str, tuple[int, str, str]] = {}
        self._ended = False
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def run(self, number: str, words: list[str], timeout_s: float) -> tuple[int, str, str] | None:
        """Exit code and what was written; None: no answer, and the JVM has ended."""
        assert self._process.stdin is not None
        # A mark before each, so that an empty word is a word.
        encoded = [f"={base64.b64encode(word.encode()).decode()}" for word in words]
        with self._changed:
            self._process.stdin.write(f"{' '.join([number, *encoded])}\n")
            self._process.stdin.flush()
            self._changed.wait_for(lambda: number in self._answers or self._ended, timeout_s)
            answer = self._answers.pop(number, None)
        if answer is None:
            self.kill()
        return answer

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            number, code, *written = line.rstrip("\n").split(" ")
            stdout, stderr = (
                base64.b64decode(part).decode("utf-8", errors="replace") for part in written
            )
            with self._changed:
                self._answers[number] = int(code), stdout, stderr
                self._changed.notify_all()
        self._process.wait()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def kill(self) -> None:
        """End it, and all that runs in it."""
        self._process.kill()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
