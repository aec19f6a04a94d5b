"""Origin of an append, which decides how much of it is validated."""

from enum import IntEnum


class AppendOrigin(IntEnum):
    """The source of an append (Kafka: AppendOrigin.java)."""

    REPLICATION = 0
    """From the leader, or read back from disk: everything was checked before."""
    COORDINATOR = 1
    """From a coordinator of this cluster: producer epochs are checked, sequences are not."""
    CLIENT = 2
    """From a client (untrusted): everything is validated."""
