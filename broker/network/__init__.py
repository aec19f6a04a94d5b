"""Sockets: acceptors take connections, processors move bytes, a channel holds requests."""
