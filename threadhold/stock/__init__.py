"""Stock: everything of `langgraph_api` that Threadhold replaces. `table.py` has one row for each part."""
