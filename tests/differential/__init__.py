"""Our codec beside other people's: same values, same bytes."""
