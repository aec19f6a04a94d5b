"""The local log: segments, indexes, recovery, retention. Synchronous; knows no sockets."""
