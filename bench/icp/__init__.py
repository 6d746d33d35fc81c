"""Judge of the ICP finder: how well it reads messages. `python -m bench.icp` runs the measures."""
