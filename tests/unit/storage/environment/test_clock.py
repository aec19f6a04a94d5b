"""The machine's clocks, and how long a thread had to wait for a processor."""

import threading

from storage.environment.clock import SystemClock, cpu_wait_ms


def test_monotonic_time_never_goes_back() -> None:
    clock = SystemClock()
    times = [clock.monotonic_ms() for _ in range(1000)]
    assert times == sorted(times)


def test_waiting_for_a_processor_is_each_threads_own() -> None:
    """It only grows; a thread that has just begun has hardly waited."""
    before = cpu_wait_ms()
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.append(cpu_wait_ms()))
    thread.start()
    thread.join()
    assert 0 <= before <= cpu_wait_ms()
    assert found[0] >= 0
