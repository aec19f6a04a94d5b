"""Choice of the kernel that finds records: the fastest that is there, or one by its name."""

from typing import Final

from pipeline.read.decode.compiled_kernel import load_compiled
from pipeline.read.decode.numpy_kernel import NumpyKernel
from pipeline.read.decode.plain_kernel import PlainKernel
from pipeline.read.decode.record_table import Kernel

KERNEL_NAMES: Final = ("compiled", "numpy", "plain")
"""Fastest first. The first is there where `make native` was run."""


def load_kernel(name: str | None = None) -> Kernel:
    """The kernel of that name, or the fastest.

    Raises:
        ValueError: There is none of that name, or it is not compiled here; the sentence says why.
    """
    if name is None or name == "compiled":
        compiled, problem = load_compiled()
        if compiled is not None:
            return compiled
        if name is not None:
            raise ValueError(f"no compiled kernel: {problem}")
        return NumpyKernel()
    if name == "numpy":
        return NumpyKernel()
    if name == "plain":
        return PlainKernel()
    raise ValueError(f"no kernel {name}; there are {', '.join(KERNEL_NAMES)}")


def kernel_name() -> str:
    """Name of the default kernel on this machine."""
    return load_kernel().name


__all__ = ["KERNEL_NAMES", "kernel_name", "load_kernel"]
