"""Work in another thread."""

import asyncio
import threading

from broker.groups.modern.offload import ThreadOffload


async def test_outcome_comes_back_to_the_loop() -> None:
    loop_thread = threading.get_ident()
    outcome: asyncio.Future[tuple[int, int]] = asyncio.get_running_loop().create_future()
    ThreadOffload().run(
        threading.get_ident,
        lambda worker: outcome.set_result((worker, threading.get_ident())),
        outcome.set_exception,
    )
    worker, told_in = await outcome
    assert worker != loop_thread
    assert told_in == loop_thread


async def test_failure_comes_back_too() -> None:
    failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    def fail() -> None:
        raise ValueError("no")

    ThreadOffload().run(fail, lambda _: None, failed.set_result)
    assert isinstance(await failed, ValueError)
