"""The steps of the ICP finder, in the order of its graph."""
