"""Index files of a segment: offsets, timestamps, aborted transactions."""
