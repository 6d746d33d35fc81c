"""Companies: Singapore's register of companies and its classification of industries, for every graph."""
