"""What a reader of a topic plans: segments, ends, aborted transactions, times, pieces."""
