"""Local caches of remote segments: chunks, indexes, and the downloads that fill them."""
