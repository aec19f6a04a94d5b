"""Walks over the records of batches, in C where it was compiled, else in Python."""
