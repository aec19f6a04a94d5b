"""Jobs that keep a table exactly once behind a topic."""
