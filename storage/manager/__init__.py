"""All logs of a broker: start, periodic maintenance, moves between directories, shutdown."""
