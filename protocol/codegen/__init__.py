"""Writes `protocol.messages`. A tool for developers: nothing at run time imports it.

`make codegen` runs `python -m protocol.codegen`. The field tables (names, types, nullability, tags,
defaults, versions) are read from the typed messages of kio, a development dependency; everything
written is ours.
"""
