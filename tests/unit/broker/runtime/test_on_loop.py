"""What changes a serving log happens in the loop's thread, wherever it was asked for."""

import asyncio
import threading

import pytest

from broker.runtime.on_loop import OnLoop


@pytest.fixture
async def on_loop() -> OnLoop:
    return OnLoop(asyncio.get_running_loop())


async def test_a_thread_gets_the_result_from_the_loop(on_loop: OnLoop) -> None:
    """The act runs in the loop's thread, while the asking thread waits."""
    loop_thread = threading.get_ident()
    assert await asyncio.to_thread(on_loop, threading.get_ident) == loop_thread
    assert await asyncio.to_thread(threading.get_ident) != loop_thread


async def test_the_loop_itself_does_not_wait(on_loop: OnLoop) -> None:
    """Else it would wait for itself."""
    assert on_loop(threading.get_ident) == threading.get_ident()


async def test_errors_come_out_where_it_was_asked_for(on_loop: OnLoop) -> None:
    """The loop goes on."""

    def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await asyncio.to_thread(on_loop, fail)
    assert await asyncio.to_thread(on_loop, lambda: 7) == 7


async def test_close_lets_nobody_wait_for_a_loop_that_is_gone(on_loop: OnLoop) -> None:
    """The broker's last step waits for its threads on the loop: one that waits back would hang."""
    asked = threading.Event()
    found: list[object] = []

    def ask() -> None:
        asked.set()
        found.append(on_loop(threading.get_ident))
        found.append(on_loop(lambda: "after"))

    thread = threading.Thread(target=ask)
    thread.start()
    # The loop does not turn from here on, as in `Disk.close`.
    assert asked.wait(60)
    on_loop.close()
    thread.join(60)
    assert not thread.is_alive()
    assert found[1] == "after"
