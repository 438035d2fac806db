"""`python -m turnout`: the command line, where the `turnout` script is not on the path."""

from turnout.cli import main

# Worker processes that are spawned import this module again and must not run it.
if __name__ == "__main__":
    main()
