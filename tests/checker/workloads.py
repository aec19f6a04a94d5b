"""Which kinds of clients a run has, and what is special about some; see `tests.checker.worker`.

Only names, as a broker with a seeded bug reads them, too.
"""

from typing import Final

JAVA: Final = (
    *("jsend", "jtxn", "jtxn", "jsubscribe", "jnextsubscribe", "jmixed", "jjob", "jnextjob"),
    *("jshare", "jshare", "jshare"),
)
TRANSACTIONAL: Final = (
    *("send", "txn", "txn", "rawtxn", "rawtxn", "longtxn", "read"),
    *("subscribe", "subscribe", "nextsubscribe", "nextsubscribe", "mixed", "mixed"),
    *("job", "job", "nextjob", "nextjob", "rawjob", "ask"),
)
EVERYBODY: Final = (*TRANSACTIONAL, *JAVA)
SHARING: Final = ("send", "txn", "rawtxn", "jtxn", "jshare", "jshare", "jshare")
"""A share group and who writes what it reads."""

CIRCLING: Final = ("send", "txn", "txn", "txn", "rawtxn", "jtxn", "jtxn", "read")
"""Transactions that read each other."""

BRIEF: Final = (
    *("send", "txn", "rawtxn", "read", "subscribe", "mixed"),
    *("nextsubscribe", "nextsubscribe", "job", "nextjob", "nextjob", "rawjob", "ask"),
    *("jtxn", "jshare", "jshare"),
)
"""One of each, and two where they are to share partitions."""

PLAIN: Final = (
    *("send", "send", "read", "read", "ask"),
    *("subscribe", "subscribe", "nextsubscribe", "nextsubscribe", "mixed", "mixed"),
)
WRITERS: Final = frozenset({"send", "txn", "rawtxn", "longtxn", "jsend", "jtxn"})
MEMBERS: Final = frozenset(
    {"subscribe", "nextsubscribe", "mixed", "job", "nextjob", "jshare"}
    | {"jsubscribe", "jnextsubscribe", "jmixed", "jjob", "jnextjob"}
)
JOBS: Final = {
    # Kinds, and the groups that they are members of.
    "job": "job",
    "jjob": "job",
    "nextjob": "nextjob",
    "jnextjob": "nextjob",
    "rawjob": "rawjob",
}
