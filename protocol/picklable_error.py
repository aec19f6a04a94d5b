"""The base of errors that may cross from process to process.

Python pickles an exception as its class and `args`, which is the text alone: a constructor that
takes anything else then fails in the process that should have read the text, and that failure is
all that a user sees. Here an error comes back as it was: its text, and its attributes.
"""

from typing import Any

from typing_extensions import override


class PicklableError(Exception):
    """An exception that is pickled by its text and attributes, whatever its constructor takes."""

    @override
    def __reduce__(self) -> Any:
        """Make it again without its constructor."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(
    kind: type[PicklableError], args: tuple[Any, ...], attributes: dict[str, Any]
) -> PicklableError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error
