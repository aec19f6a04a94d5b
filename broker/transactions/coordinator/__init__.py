"""The transaction coordinator: the state of every transactional id."""
