"""One mask gives one trajectory: in the simulator, and through Flower's messages."""

import pytest
import torch
from tests.conformance.cases import ASKED, CASES, ROUNDS, classification, in_process, logistic
from tests.flower.federations import on_flower


@pytest.mark.parametrize("case", CASES)
def test_a_mask_gives_the_trajectory_that_it_gives_in_the_simulator(case) -> None:
    """Losses, empty rounds, newcomers and server rounds included."""
    world = classification(asked=ASKED)
    expected = torch.stack(in_process(CASES[case], world, logistic(), ROUNDS))
    found = torch.stack(on_flower(CASES[case], world, logistic(), ROUNDS))
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)
