"""Validity: until when this broker may act on what it last heard of the cluster.

Who leads, coordinates or heartbeats by an image that may be old compares one number with the time
that a request reads anyway. A process that was paused, or a machine that slept, finds that it has
passed before any timer or thread has run.

It is *granted* anew by a transaction that finds the broker registered, and then *extended* by
renewals, until it has ended: a renewal that comes late extends nothing.
"""

import math
import threading


class Validity:
    """See the module. Written by two threads, the loop's and the lease keeper's; read freely.

    Attributes:
        until_ms: On the clock's monotonic time; `inf` on a single node, `-inf` without a lease.
        grant_number: How often it was granted.
    """

    __slots__ = ("_lock", "grant_number", "until_ms")

    def __init__(self, until_ms: float = -math.inf) -> None:
        self.until_ms = until_ms
        self.grant_number = 0
        self._lock = threading.Lock()

    def grant(self, until_ms: float) -> int:
        """Begin again; return the grant's number, which `extend` needs."""
        with self._lock:
            self.until_ms = until_ms
            self.grant_number += 1
            return self.grant_number

    def extend(self, grant_number: int, until_ms: float, now_ms: float) -> bool:
        """Move the end on; False: this grant has ended, or passed before now."""
        with self._lock:
            if grant_number != self.grant_number or now_ms > self.until_ms:
                return False
            self.until_ms = until_ms
            return True

    def end(self, grant_number: int | None = None) -> None:
        """Nothing is known any more, until it is granted again.

        Args:
            grant_number: Only if this is the newest grant; None: whichever that is.
        """
        with self._lock:
            if grant_number in (None, self.grant_number):
                self.until_ms = -math.inf
                self.grant_number += 1
