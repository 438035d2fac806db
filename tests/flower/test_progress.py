"""What the server knows when a client has lost its part, and when clients join."""

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: pip install 'turnout[flower]'")

import torch
from flwr.app import Context, RecordDict
from flwr.clientapp import ClientApp

from turnout.algorithms import (
    amplified,
    amplified_scaffold,
    fedawe,
    fedkeep,
    focus,
    mifa,
    scaffold,
)
from turnout.errors import InputError
from turnout.flower import train
from turnout.flower.history import own_weight
from turnout.flower.messages import Ticket
from turnout.flower.privacy import require_private
from turnout.flower.progress import begin, forget, grow
from turnout.parts.local import Local
from turnout.round import Upload, absorb, announce, close

X = torch.tensor([1.0, 2.0], dtype=torch.float64)


def after_one_round(algorithm, **changes: list[float]):
    """Client 0 of two has delivered."""
    progress = begin(algorithm, X, 2, None, {})
    vectors = {name: torch.tensor([change]).double() for name, change in changes.items()}
    upload = Upload(torch.tensor([[4.0, 6.0]]).double(), np.ones(1), vectors)
    state = absorb(algorithm, progress.server, np.array([0]), upload)
    progress.server = close(algorithm, state)
    return progress


def test_what_is_started_anew_leaves_nothing_behind() -> None:
    """FOCUS: the server's sum is of gradients that clients no longer keep."""
    progress = after_one_round(focus())
    assert progress.server.transform["0"]["sum"].tolist() == [2, 3]
    fresh = forget(focus(), progress)
    assert fresh.server.transform["0"]["sum"].tolist() == [0, 0]
    assert torch.equal(close(focus(), fresh.server).x, progress.server.x)  # and moves nothing


def test_an_amplification_window_is_not_what_clients_keep() -> None:
    algorithm = amplified(period=3, factor=2.0, inner=mifa(memory="client"))
    progress = after_one_round(algorithm, memory=[4.0, 6.0])
    assert progress.server.transform["1"]["window"].tolist() == [2, 3]
    fresh = forget(algorithm, progress)
    assert fresh.server.memory["mean"].tolist() == [0, 0]
    assert fresh.server.transform["1"]["window"].tolist() == [2, 3]
    assert fresh.server.transform["1"]["rounds"] == 1


def test_changes_of_a_window_that_is_under_way_are_forgotten_too() -> None:
    algorithm = amplified_scaffold(period=3)
    progress = after_one_round(algorithm, recent=[5.0, 5.0])
    assert progress.server.changes["recent"].tolist() == [5, 5]
    fresh = forget(algorithm, progress)
    assert fresh.server.changes["recent"].tolist() == [0, 0]
    assert fresh.server.means["recent"].tolist() == [0, 0]


def test_newcomers_start_from_the_model_as_it_is_and_others_where_they_were_left() -> None:
    algorithm = fedawe()
    progress = grow(algorithm, after_one_round(algorithm), 3)
    x = progress.server.x
    starts = announce(algorithm, progress.server, np.array([0, 1, 2])).x
    assert x.tolist() == [5, 8]
    assert starts.tolist() == [[5, 8], [1, 2], [5, 8]]
    assert progress.server.arrived is not None
    assert progress.server.arrived.tolist() == [False] * 3


def test_everybodys_intervals_survive_newcomers() -> None:
    algorithm = fedkeep(shrink=1.0)
    before = after_one_round(algorithm, memory=[4.0, 6.0]).server.weight["everybody"].tolist()
    grown = grow(algorithm, after_one_round(algorithm, memory=[4.0, 6.0]), 3)
    assert grown.server.weight["everybody"].tolist() == before == [1, 1]


@pytest.mark.parametrize("algorithm", [focus(), scaffold(), amplified_scaffold()], ids=repr)
def test_methods_that_steer_local_steps_refuse_a_loop_of_ones_own(algorithm) -> None:
    with pytest.raises(InputError, match=f"{algorithm.name} steers every local step"):
        train(ClientApp(), algorithm)


@pytest.mark.parametrize("algorithm", [focus(local=Local()), fedkeep()], ids=repr)
def test_methods_whose_clients_believe_that_all_they_sent_counts_refuse_privacy(algorithm) -> None:
    """Clipping and noise would part what clients keep from what the server has summed up."""
    with pytest.raises(InputError, match="remembers what clients have sent"):
        require_private(algorithm)


def test_a_weight_that_needs_everybodys_history_is_the_servers() -> None:
    """No client knows it, so with secure aggregation, too, it is the one in the order."""
    sent = Ticket(0, 0, 5, 0.1, weight=3.5, share=1.0, accepted=-1, generation=0, last=-1)
    empty = Context(0, 0, {}, RecordDict(), {})
    assert own_weight(fedkeep(shrink=1.0).weight, empty, sent) == 3.5
    assert not empty.state  # and nothing is counted
    assert own_weight(fedkeep().weight, empty, sent) == 1.0  # its own: nothing seen so far
