"""Batches: views of the log, progress of the table, stored plans."""
