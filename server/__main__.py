"""`python -m server` is the command `threadhold`."""

from server.cli import main

if __name__ == "__main__":
    main()
