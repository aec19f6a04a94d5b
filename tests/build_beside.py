"""Compiles the hot path in a process of its own, while tests run that need none of it."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Final

from native.loader import VARIABLE

END_S: Final = 10
"""How long a build that is no longer wanted may take to remove what it has begun."""


class BuildBeside:
    """`python -m native --modules`, from entering to the end of `wait`; left, it is ended.

    Attributes:
        has_failed: Whether the build has ended with an error, which it has printed.
    """

    def __init__(self, environment: Mapping[str, str], *, is_wanted: bool) -> None:
        """Nothing is built where it is not wanted, or `VARVE_NATIVE` says that Python runs."""
        self.has_failed = False
        self._environment = environment
        self._is_wanted = is_wanted and environment.get(VARIABLE) != "off"
        self._build: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "BuildBeside":
        if self._is_wanted:
            # A group of its own, so that the compiler ends with what has started it.
            self._build = subprocess.Popen(
                [sys.executable, "-m", "native", "--if-possible", "--modules"],
                env=dict(self._environment),
                start_new_session=True,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._build is None or self._build.poll() is not None:
            return
        # It removes what it has begun; whoever does not listen, as a shell in the background, ends.
        self._signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            self._build.wait(END_S)
        self._signal(signal.SIGKILL)
        self._build.wait()

    def is_over(self) -> bool:
        """Whether it is compiled, or cannot be, so that `wait` takes no time."""
        return self._build is None or self._build.poll() is not None

    def wait(self) -> None:
        """Until it is compiled, or cannot be."""
        if self._build is None:
            return
        if self._build.poll() is None:
            sys.stdout.write("-- waiting for the compiler\n")
            sys.stdout.flush()
        self.has_failed = self._build.wait() != 0

    def _signal(self, number: int) -> None:
        assert self._build is not None
        with suppress(ProcessLookupError):
            os.killpg(self._build.pid, number)


__all__ = ["BuildBeside"]
