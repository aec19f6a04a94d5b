"""What must hold of single kinds of things, asked by `invariants` and `clients`."""
