"""The client library behind commands: its admin client, and requests that it lacks."""
