"""What the kernel knows of processes, and how a benchmark ends."""

import signal
import subprocess
import sys

PROGRAM = """
import signal
from bench.process import end_on_sigterm
end_on_sigterm()
try:
    print("begun", flush=True)
    signal.pause()
finally:
    print("servers ended", flush=True)
"""


def test_a_benchmark_that_is_told_to_end_ends_its_servers() -> None:
    """What stands in its `finally` is done."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.terminate()
        assert process.stdout.readline() == "servers ended\n"
        assert process.wait(60) == 128 + signal.SIGTERM
