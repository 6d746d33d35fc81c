"""Reading a turn: what one message of a person says, and what may follow from it."""
