"""Pages for people: one file of HTML that needs nothing else."""
