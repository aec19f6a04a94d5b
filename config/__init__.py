"""Settings: names, kinds, defaults, sources. Imports no other package of ours."""
