"""Says of a compiled class that classes of Python may inherit from it.

    @mypyc_attr(allow_interpreted_subclasses=True)
    class DelayedOperation:

mypyc knows the decorator by its full name, `mypy_extensions.mypyc_attr`. A broker needs no mypy, so
when the code runs it is one that does nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:

    def mypyc_attr(**_):
        """Leave the class as it is."""
        return lambda cls: cls


__all__ = ["mypyc_attr"]
