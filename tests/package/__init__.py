"""The wheel, installed without a lock file in a clean environment. Run by `make wheel`."""
