"""The papers' tables and figures from one command: each item is a file in `papers/`."""
