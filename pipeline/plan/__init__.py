"""Planning of a read of a topic: segments, ends, aborted transactions, times, pieces."""
