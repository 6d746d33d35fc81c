"""A recorded history in the manner of Jepsen: clients, faults, and a checker of what came of it."""
