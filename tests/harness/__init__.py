"""Whole parts of the broker on fakes, with time and faults in the test's hands."""
