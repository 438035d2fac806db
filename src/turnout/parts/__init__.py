"""The small parts that algorithms are made of; `turnout.algorithms` puts them together."""
