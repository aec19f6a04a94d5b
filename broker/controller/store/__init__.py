"""The metadata store: keys with versions, over memory and SQLite."""
