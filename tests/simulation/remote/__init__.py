"""Remote storage of a simulated cluster: its bucket, tier processes, and what must hold of both."""
