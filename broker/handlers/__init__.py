"""One module per API: what it answers, in which versions, and why."""
