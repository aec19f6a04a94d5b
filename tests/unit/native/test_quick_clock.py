"""`native/quick_clock.c` under sanitizers: the same clocks as Python's."""

import sysconfig

from tests.unit.native.sanitizers import run_sanitized, sanitized_source

SCRIPT = """
import sys
import time
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from storage.environment import quick_clock as python

loader = ExtensionFileLoader("storage.environment.quick_clock", sys.argv[1])
spec = spec_from_file_location(loader.name, loader.path, loader=loader)
clock = module_from_spec(spec)
loader.exec_module(clock)
assert {name for name in vars(clock) if not name.startswith("_")} == set(python.__all__)
for _ in range(int(sys.argv[3])):
    for name in python.__all__:
        ours, theirs = getattr(python, name), getattr(clock, name)
        times = [ours(), theirs(), ours()]
        assert times == sorted(times), (name, times)
        assert type(times[0]) is type(times[1])
for name in python.__all__:
    try:
        getattr(clock, name)(1)
    except TypeError:
        print("refused")
"""


def test_they_are_the_clocks_that_python_reads() -> None:
    """Neither before nor after what Python reads around them."""
    with sanitized_source("quick_clock", f"-I{sysconfig.get_path('include')}") as sanitized:
        done = run_sanitized(SCRIPT, sanitized, 0, 1000)
    assert (done.returncode, done.stdout) == (0, "refused\n" * 2), done.stderr[-3000:]
