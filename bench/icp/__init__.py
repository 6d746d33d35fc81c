"""Quality of the ICP finder: its understanding, its ranking, its industries."""
