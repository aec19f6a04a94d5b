"""The log of one partition: its state, and a part for each thing that is done to it."""
