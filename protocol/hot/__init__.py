"""Produce and Fetch by hand: zero-copy decode, responses as buffer lists."""
