"""`varve pipeline`: jobs that keep tables behind topics."""
