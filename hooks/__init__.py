"""Policy: authentication, authorization and the thread policy.

`auth.py` uses `threadhold.auth`; `threads.py` uses the hook protocol of the library.
"""
