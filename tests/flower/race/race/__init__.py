"""A Flower app with one training loop, to be run under Flower's FedAvg and under turnout."""
