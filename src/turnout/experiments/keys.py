"""Which keys of [participation] and [data.partition] are not options of what these name."""

WRAPPERS = {"sampled": "sampled", "excluded": "absent", "lossy": "lost"}
"""Processes around another one, and the keys of [participation] that ask for them."""
SUPPLIED = ("clients", "seed", "samples", "targets", "owners", "inner")
"""Arguments of processes and partitions that the world knows by itself."""
