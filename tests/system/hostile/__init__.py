"""What strangers send: a broker must pay no more for it than for an ordinary request."""
