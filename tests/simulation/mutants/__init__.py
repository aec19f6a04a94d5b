"""Bugs seeded on purpose: does the simulation notice?

Each replaces a piece of the broker in a process of its own (`--mutant NAME`); `--mutants` tries
them one after the other, each for a time (`catalogue.py`).
"""
