"""The kinds of work that our own clients do; see `tests.checker.worker`."""

import asyncio
from typing import Any

from tests.checker.clients.client_process import (
    CLIENT_PATIENCE_S,
    GROUP_TOPICS,
    KEYS,
    MIXED_GROUP,
    NEXT_SUBSCRIBE_GROUP,
    RAW_JOB_GROUP,
    SUBSCRIBE_GROUP,
    TRANSACTION_TIMEOUT_MS,
    WRITABLE,
    Worker,
    name,
)
from tests.checker.clients.raw import (
    CommittedReader,
    GaveUpError,
    Partition,
    RefusedError,
    RetryPolicy,
    TransactionalProducer,
)


async def _raw_transaction(
    worker: Worker,
    producer: TransactionalProducer,
    planned: list[tuple[Partition, str]],
    committing: tuple[str, dict[Partition, int]] | None,
    *,
    dwell_s: float | None = None,
    **value: Any,
) -> tuple[str, bool]:
    """One transaction of version 2: its outcome, and whether the producer can go on."""
    draw = worker.random
    sends: list[list[Any]] = [[name(key), sent, None] for key, sent in planned]
    i = worker.recorder.invoke("txn", sends=sends, **value)
    commit, asked, outcome = draw.random() < 0.8, False, "fail"
    try:
        by_key: dict[Partition, list[int]] = {}
        for place, (key, _) in enumerate(planned):
            by_key.setdefault(key, []).append(place)
        offsets = await producer.produce(
            {key: [planned[place][1] for place in places] for key, places in by_key.items()}
        )
        for key, places in by_key.items():
            for delta, place in enumerate(places):
                sends[place][2] = offsets[key] + delta
        await asyncio.sleep(worker.dwell_s() if dwell_s is None else dwell_s)
        if committing is not None:
            await producer.commit_offsets(*committing)
        asked = commit
        await producer.end(commit=commit)
        outcome, alive = ("ok" if commit else "fail"), True
    except (RefusedError, GaveUpError) as error:
        outcome, alive = ("info" if asked else "fail"), False
        value = {"error": str(error)}
    worker.recorder.complete(i, outcome, "txn", sends=sends, **value)
    return outcome, alive


async def _raw_producer(worker: Worker, transactional_id: str) -> TransactionalProducer:
    while True:
        producer = TransactionalProducer(
            worker.options.address,
            transactional_id,
            version=2,
            policy=RetryPolicy(worker.answer_s, CLIENT_PATIENCE_S, 0.05),
            timeout_ms=TRANSACTION_TIMEOUT_MS,
        )
        try:
            await producer.init()
        except (RefusedError, GaveUpError):
            producer.close()
            if worker.stopping:
                raise SystemExit(0) from None
            await asyncio.sleep(0.2)
            continue
        return producer


async def rawtxn(worker: Worker) -> None:
    """As `txn`, with the new protocol, and without polls."""
    draw = worker.random
    producer = await _raw_producer(worker, f"rawtxn-{worker.options.slot}")
    while not worker.stopping:
        planned = [(draw.choice(WRITABLE), worker.value()) for _ in range(draw.randint(1, 4))]
        _, alive = await _raw_transaction(worker, producer, planned, None)
        if not alive:
            producer.close()
            producer = await _raw_producer(worker, f"rawtxn-{worker.options.slot}")
        await asyncio.sleep(draw.expovariate(worker.options.rate_per_s))
    producer.close()


async def longtxn(worker: Worker) -> None:
    """A transaction that lasts for seconds, on a topic of its own: faults find it open."""
    draw = worker.random
    producer = await _raw_producer(worker, f"longtxn-{worker.options.slot}")
    while not worker.stopping:
        dwell_s = draw.uniform(0.5, 4.0)
        _, alive = await _raw_transaction(
            worker, producer, [(("long", 0), worker.value())], None, dwell_s=dwell_s
        )
        if not alive:
            producer.close()
            producer = await _raw_producer(worker, f"longtxn-{worker.options.slot}")
    producer.close()


async def rawjob(worker: Worker) -> None:
    """As `job`, with the new protocol; its one member owns the inputs by its transactional id."""
    draw, recorder = worker.random, worker.recorder
    inputs: list[Partition] = [("in", index) for index in range(KEYS["in"])]
    recorder.note(
        "pipeline",
        group=RAW_JOB_GROUP,
        inputs=[name(key) for key in inputs],
        outputs=["rawout-0", "rawout-1"],
    )
    reader = CommittedReader(worker.options.address, RetryPolicy(worker.answer_s, 600.0, 0.05))
    while not worker.stopping:
        # The producer first: it fences and ends what another one has pending.
        producer = await _raw_producer(worker, f"rawjob-{worker.options.slot}")
        committed = await reader.committed(RAW_JOB_GROUP, "in", KEYS["in"])
        positions = {key: max(committed[key[1]], 0) for key in inputs}
        recorder.note("seek", keys=[name(key) for key in inputs])
        alive = True
        while alive and not worker.stopping:
            polls = {}
            after = dict(positions)
            for key in inputs:
                fetched = await reader.fetch(key, positions[key], max_wait_ms=50)
                found = [one for one in fetched.records if one[0] >= positions[key]][:20]
                if found:
                    polls[name(key)] = found
                    after[key] = found[-1][0] + 1
                elif fetched.next_offset > positions[key]:
                    positions[key] = after[key] = fetched.next_offset
            if not polls:
                continue
            planned = [
                (("rawout", draw.randrange(KEYS["rawout"])), f"{worker.value()}|{value}")
                for found in polls.values()
                for _, value in found
            ]
            offsets = {key: after[key] for key in inputs if name(key) in polls}
            outcome, alive = await _raw_transaction(
                worker,
                producer,
                planned,
                (RAW_JOB_GROUP, offsets),
                polls=polls,
                group=RAW_JOB_GROUP,
                offsets={name(key): offset for key, offset in offsets.items()},
            )
            if outcome == "ok":
                positions = after
            elif alive:
                recorder.note("seek", keys=[name(key) for key in inputs])
        producer.close()
    reader.close()


async def ask(worker: Worker) -> None:
    """What the groups have committed, as the broker says."""
    reader = CommittedReader(worker.options.address, RetryPolicy(worker.answer_s, 30.0, 0.05))
    while not worker.stopping:
        for group, topic in GROUP_TOPICS.items():
            i = worker.recorder.invoke("committed", group=group, offsets={})
            try:
                found = await reader.committed(group, topic, KEYS[topic])
            except (RefusedError, GaveUpError) as error:
                worker.recorder.complete(i, "info", "committed", error=str(error))
                continue
            offsets = {f"{topic}-{index}": offset for index, offset in found.items()}
            worker.recorder.complete(i, "ok", "committed", offsets=offsets)
        if worker.random.random() < 0.3:
            for group in (SUBSCRIBE_GROUP, NEXT_SUBSCRIBE_GROUP, MIXED_GROUP):
                await _commit_as_zombie(worker, reader, group)
        await asyncio.sleep(0.3)


async def _commit_as_zombie(worker: Worker, reader: CommittedReader, group: str) -> None:
    """What a member does that was thrown out long ago and has not noticed."""
    offsets = {"jepsen-0": 0}
    i = worker.recorder.invoke("commit", group=group, offsets=offsets)
    outcome = "ok"
    try:
        await reader.commit_as_member(group, ("jepsen", 0), 0, member_id="gone", generation=1)
    except RefusedError:
        outcome = "fail"
    except GaveUpError:
        outcome = "info"
    worker.recorder.complete(i, outcome, "commit")
