"""Queue: claims runs, executes them and recovers those of dead workers."""
