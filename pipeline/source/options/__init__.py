"""The source's options: one table of them, parsed and checked at once."""
