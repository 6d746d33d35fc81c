"""The nodes of the graph `research`: the workers, and the begin and the end of a run."""
