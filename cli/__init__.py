"""The `varve` command."""
