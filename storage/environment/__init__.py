"""What a log needs of the machine, passed in: clock, files, randomness, descriptors, waiting."""
