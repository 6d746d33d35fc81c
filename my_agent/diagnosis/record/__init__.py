"""Record: the events of a session, the texts of its sources, and the state that follows from them."""
