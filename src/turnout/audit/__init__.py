"""From a participation log to a diagnosis: who shows up, what that does, and what to run."""
