"""`varve groups`: list, describe, delete, reset offsets."""
