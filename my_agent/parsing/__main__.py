"""`python -m my_agent.parsing PARENT`: a worker of the process `PARENT`."""

from my_agent.parsing.worker import main

if __name__ == "__main__":
    main()
