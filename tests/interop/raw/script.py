"""Scripts by name: functions that talk to one broker through a `Dialogue`."""

from collections.abc import Callable

from tests.interop.raw.dialogue import Dialogue

Script = Callable[[Dialogue], None]

SCRIPTS: dict[str, Script] = {}


def script(function: Script) -> Script:
    """Register a script under its function's name."""
    assert function.__name__ not in SCRIPTS, function.__name__
    SCRIPTS[function.__name__] = function
    return function
