"""One client process of the workload: `python -m tests.checker.worker JSON`.

It works until SIGTERM, then finishes what it is at; it may be killed at any moment. The kinds:

    send           idempotent producer, many sends in flight                       librdkafka
    txn            transactions that read assigned keys and write                  librdkafka
    read           reader with assigned keys, from their beginning again and again librdkafka
    subscribe      group member that commits what it has read                      librdkafka
    nextsubscribe  the same with the protocol of KIP-848                           librdkafka
    mixed          the same, now with one protocol, now with the other             librdkafka
    job            consume-transform-produce in a group                            librdkafka
    nextjob        the same with the protocol of KIP-848                           librdkafka
    rawtxn         transactions of version 2                                       ours
    rawjob         consume-transform-produce of version 2, offsets included        ours
    longtxn        transactions that last for seconds, on a topic of their own     ours
    history        reader of what is in remote storage alone                       ours
    ask            asks for the offsets of all groups                              ours
    jsend, jtxn    as without the j                                                Java
    jsubscribe, jnextsubscribe, jmixed
                   members of the same groups as without the j                     Java
    jjob, jnextjob members of the same jobs as without the j                       Java
    jshare         member of a share group                                         Java
    jsharelast     the same, to see after the end what is left                     Java

An operation that did not end as planned is `fail` only where the broker or the library says that
it is so; a client that does not know goes on as a new one.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tests.checker.clients.client_process import (
    CLASSIC,
    CONSUMER,
    JOB_GROUP,
    MIXED_GROUP,
    NEXT_JOB_GROUP,
    NEXT_SUBSCRIBE_GROUP,
    SUBSCRIBE_GROUP,
    Worker,
    WorkerOptions,
)
from tests.checker.clients.java_work import jjob, jsend, jsubscribe, jtxn
from tests.checker.clients.librdkafka_work import job, read_assigned, send, subscribe, txn
from tests.checker.clients.raw_work import ask, longtxn, rawjob, rawtxn
from tests.checker.clients.share_work import jshare
from tests.checker.clients.tier_work import history

KINDS: Final[dict[str, Callable[[Worker], Any]]] = {
    "send": send,
    "txn": txn,
    "read": read_assigned,
    "subscribe": partial(subscribe, group=SUBSCRIBE_GROUP, protocols=(CLASSIC,)),
    "nextsubscribe": partial(subscribe, group=NEXT_SUBSCRIBE_GROUP, protocols=(CONSUMER,)),
    "mixed": partial(subscribe, group=MIXED_GROUP, protocols=(CLASSIC, CONSUMER)),
    "job": partial(job, group=JOB_GROUP, protocol=CLASSIC, sink="out"),
    "nextjob": partial(job, group=NEXT_JOB_GROUP, protocol=CONSUMER, sink="nextout"),
    "rawtxn": rawtxn,
    "rawjob": rawjob,
    "longtxn": longtxn,
    "history": history,
    "ask": ask,
    "jsend": jsend,
    "jtxn": jtxn,
    "jsubscribe": partial(jsubscribe, group=SUBSCRIBE_GROUP, protocols=(CLASSIC,)),
    "jnextsubscribe": partial(jsubscribe, group=NEXT_SUBSCRIBE_GROUP, protocols=(CONSUMER,)),
    "jmixed": partial(jsubscribe, group=MIXED_GROUP, protocols=(CLASSIC, CONSUMER)),
    "jjob": partial(jjob, group=JOB_GROUP, protocol=CLASSIC, sink="out"),
    "jnextjob": partial(jjob, group=NEXT_JOB_GROUP, protocol=CONSUMER, sink="nextout"),
    "jshare": jshare,
    "jsharelast": partial(jshare, accepts_all=True),
}


def main() -> None:
    """Work as told."""
    worker = Worker(WorkerOptions(**json.loads(sys.argv[1])))
    work = KINDS[worker.options.kind](worker)
    if work is not None:
        asyncio.run(work)


if __name__ == "__main__":
    main()
