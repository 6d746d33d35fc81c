"""Policy: who may do what (`auth.py`), on the library's hook protocol and LangGraph's `Auth`."""
