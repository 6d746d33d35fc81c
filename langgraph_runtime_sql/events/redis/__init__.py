"""Redis: delivers events, wake-ups and control messages between processes."""
