"""What the ICP finder leaves to the background: one candidate after the other is enriched."""
