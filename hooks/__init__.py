"""Policy: authentication, authorization and the thread policy.

`auth.py` uses LangGraph's `Auth`; `threads.py` uses the hook protocol of the library.
"""
