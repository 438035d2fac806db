"""Experiments as files: a configuration, its cells (algorithm × seed), and what they leave behind."""
