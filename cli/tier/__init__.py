"""`varve tier`: inspect, verify, clean and restore remote storage."""
