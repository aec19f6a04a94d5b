"""The release: read by the build, shown by the banner and `varve --version`."""

VERSION = "0.1.0"
