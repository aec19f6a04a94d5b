"""Blocking calls off the event loop: the interface of the broker's thread pool.

The remote log lies below the broker and may not import it; `broker.runtime.disk.Disk.run` fits
this.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Run(Protocol):
    """Calls a function in a thread."""

    def __call__(self, function: Callable[..., T], /, *args: Any) -> Coroutine[Any, Any, T]:
        """Its result, or its exception."""
        ...
