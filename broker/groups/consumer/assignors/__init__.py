"""Server-side assignors: they compute the target assignments of consumer groups."""
