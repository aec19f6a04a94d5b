"""One segment: a `.log` file with its indexes, and the segments of a log in order."""
