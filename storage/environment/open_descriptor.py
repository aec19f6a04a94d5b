"""A descriptor of an open file, closed at the latest when nothing refers to it any more.

It is a class of its own, and of Python, since it has `__del__`: a compiled one may be called when
the interpreter has ended so far that a traceback is a SIGSEGV (`native/modules.py`).
"""

from collections.abc import Callable


class OpenDescriptor:
    """A descriptor, and the set of all that are open, which it is in until it is closed."""

    __slots__ = ("_close", "_fd", "_held")

    def __init__(self, fd: int, held: set[int], close: Callable[[int], None]) -> None:
        """`close`: the system's; kept, as names of modules may be gone at the end."""
        self._fd = fd
        self._held = held
        self._close = close
        held.add(fd)

    def __del__(self) -> None:
        self.close()

    def detach(self) -> int:
        """Give it away, to be closed by who gets it; -1 once closed."""
        fd, self._fd = self._fd, -1
        self._held.discard(fd)
        return fd

    def close(self) -> None:
        """Close it; a second call does nothing."""
        # Out of the set before the number is free for another file.
        fd = self.detach()
        if fd >= 0:
            try:
                self._close(fd)
            except OSError:
                # Nothing is lost: callers that need the bytes on disk call `sync`.
                return
