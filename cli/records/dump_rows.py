"""What the readers of `varve dump-log` yield.

Every reader takes a path and yields rows in Kafka's vocabulary (that of DumpLogSegments). A row
with the key `damage` says what is wrong; nothing is raised for that, and reading continues where it
can.
"""

Row = dict[str, object]
"""Name to value."""
