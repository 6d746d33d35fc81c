"""Reading pages of the web, for every graph: addresses that were checked, bounds of size and time."""
