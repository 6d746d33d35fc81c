"""Analysis: signs of faults, candidate causes, and tests of them. Pure, and without a model."""
