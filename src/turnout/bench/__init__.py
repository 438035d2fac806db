"""How fast turnout is on this machine, beside others that do the same work."""
