"""A job's batches: opening, planning, working, committing, and the quarantine."""
