"""Search: filters as SQL, the metadata index and thread searches."""
