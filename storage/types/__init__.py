"""Value types and names that every part of the log shares."""
