"""Sockets: acceptors take connections, processors move bytes, the request channel holds requests."""
