"""Companies: Singapore's register, its classification of industries, and names, for every graph."""
