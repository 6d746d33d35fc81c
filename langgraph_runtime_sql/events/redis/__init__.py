"""Redis: deliver events, wake-ups and control messages between processes."""
