"""A Flower app that plays cases of the conformance suite, one after the other."""
