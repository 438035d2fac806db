"""A federation that learns handwritten digits, to be copied."""
