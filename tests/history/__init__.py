"""A recorded history in the manner of Jepsen: clients, faults, and a checker of the result."""
