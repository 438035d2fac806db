"""Server transforms by hand."""

import pytest
import torch

from turnout.algorithms.amplified import amplify
from turnout.errors import InputError
from turnout.parts.transform import chain, momentum, sgd


def play(transform, directions: list[float]) -> list[float]:
    """The model after each direction, from 0; directions and models are checked to stay whole."""
    x = torch.zeros(1, dtype=torch.float64)
    state, seen, path = transform.init(x), [], []
    for value in directions:
        direction = torch.tensor([value], dtype=torch.float64)
        seen.append((x, x.clone()))
        step, state = transform.apply(direction, x, state)
        x = x + step
        assert direction.item() == value
        assert all(torch.equal(now, then) for now, then in seen)
        path.append(x.item())
    return path


def test_sgd() -> None:
    assert play(sgd(), [1, -2, 4]) == [1, -1, 3]
    assert play(sgd(0.5), [1, -2, 4]) == [0.5, -0.5, 1.5]


def test_momentum() -> None:
    # velocity 1, ½·1 + 2 = 2.5, ½·2.5 + 0 = 1.25 (nobody came), ½·1.25 − 1 = −0.375
    assert play(momentum(1.0, 0.5), [1, 2, 0, -1]) == [1, 3.5, 4.75, 4.375]
    assert play(momentum(2.0, 0.5), [1, 2]) == [2, 7]
    assert play(momentum(0.5, 0.0), [1, -2, 4]) == play(sgd(0.5), [1, -2, 4])


def test_amplification_starts_its_window_anew() -> None:
    # P = 2, η = 3: 1 → 1; 2 → 3, + 2·3 → 9; then 1 → 10; −1 → 9, + 2·0 → 9; 5 → 14
    assert play(amplify(2, 3.0), [1, 2, 1, -1, 5]) == [1, 9, 10, 9, 14]


def test_amplification_every_round() -> None:
    assert play(amplify(1, 3.0), [1, 2, -1]) == [3, 9, 6]


def test_a_period_longer_than_the_run_changes_nothing() -> None:
    assert play(amplify(9, 3.0), [1, 2, 1]) == [1, 3, 4]


def test_a_chain_passes_steps_on_in_order() -> None:
    # Halved first, then amplified: 0.5 → 0.5; 1 → 1.5, + 1·1.5 → 3
    assert play(chain(sgd(0.5), amplify(2, 2.0)), [1, 2]) == [0.5, 3]
    # The other way round it is the amplified step that is halved: 0.5; (2 + 3)/2 → 3
    assert play(chain(amplify(2, 2.0), sgd(0.5)), [1, 2]) == [0.5, 3]
    # Not all chains commute: momentum sees amplified steps, or amplification sees its velocity.
    # 1; velocity ½·1 + (2 + 3) = 5.5 → 6.5. And: 1; velocity 2.5, + the window 3.5 → 7
    assert play(chain(amplify(2, 2.0), momentum(1.0, 0.5)), [1, 2]) == [1, 6.5]
    assert play(chain(momentum(1.0, 0.5), amplify(2, 2.0)), [1, 2]) == [1, 7]
    assert play(chain(), [1, 2]) == [1, 3]


def test_links_of_a_chain_have_states_of_their_own() -> None:
    twice = chain(momentum(1.0, 0.5), momentum(1.0, 0.5))
    # first: 1, 0.5; second: 1, ½·1 + 0.5 = 1
    assert play(twice, [1, 0]) == [1, 2]


def test_a_state_does_not_alias_the_step_that_was_returned() -> None:
    x = torch.zeros(2)
    for transform in (momentum(), amplify(3, 2.0), chain(momentum(), amplify(3, 2.0))):
        step, state = transform.apply(torch.ones(2), x, transform.init(x))
        again, _ = transform.apply(torch.zeros(2), x, state)
        expected = again.clone()
        _, state = transform.apply(torch.ones(2), x, transform.init(x))
        step.fill_(7.0)
        again, _ = transform.apply(torch.zeros(2), x, state)
        assert torch.equal(again, expected)


@pytest.mark.parametrize(
    ("field", "build"),
    [
        ("server_lr", lambda: sgd(0)),
        ("server_lr", lambda: momentum(lr=-1)),
        ("server_momentum", lambda: momentum(decay=1.0)),
        ("server_momentum", lambda: momentum(decay=-0.1)),
    ],
)
def test_bad_settings(field, build) -> None:
    with pytest.raises(InputError, match=f"^{field} is .*; it must be "):
        build()
