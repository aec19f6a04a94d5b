"""`varve tier`: look at, verify, clean and restore remote storage."""
