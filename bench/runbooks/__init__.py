"""Runbooks of a made-up shop, incidents that some of them are about, and how often the right one is quoted.

`documents/` was written for this bench. `cases.json` has the words of an incident and the runbook that is
about it, or none. The
bounds in `my_agent/diagnosis/resemblance.py` were chosen on the set `view`; `held` and `last` came later.
"""
