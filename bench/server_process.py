"""A server as a process of its own, which is killed, paused and started again at will."""

import signal
import subprocess

from bench.process import pause


class ServerProcess:
    """One process at a time, by `_process`; a subclass starts it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def kill(self) -> None:
        """End it as a power cut would; harmless when it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Stop it where it is: it accepts connections and answers nothing."""
        pause(self.pid)

    def resume(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether its process lives, paused or not."""
        return self._process is not None and self._process.poll() is None
