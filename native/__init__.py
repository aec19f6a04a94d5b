"""Compiled parts: small C sources, how they are built in place, and how they are found.

Everything works without them; what is here is faster than the Python that it stands in for, and
gives the same. Nothing is compiled when the project is installed. `make native` (or `python -m
native`) compiles where there is a compiler:

    native/<name>.c                                       the source, its contract at its head
    native/built/<name>-<platform>-<digest>.so            a shared object for ctypes

The digest is of the source and of how it is compiled, so that one that does not belong to the
source is never loaded, and building again costs nothing.
"""
