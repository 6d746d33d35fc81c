"""Queue: claim runs, execute them, and recover those of dead workers."""
