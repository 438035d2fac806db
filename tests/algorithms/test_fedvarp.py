"""FedVARP and ClusterFedVARP: by hand, and FedVARP against its formula on random traces."""

import numpy as np
import pytest
from tests.conformance.worlds import HALF, walk

from turnout.algorithms import fedvarp
from turnout.errors import InputError


def test_by_hand() -> None:
    # Clients at 0 and 4, from 8, half the way. h are the stored updates, h̄ their mean.
    # both:     h̄ = 0, Δ = −4, −2: step −3                         8 → 5      h = (−4, −2)
    # client 0: h̄ = −3, Δ = −2.5: −3 + (−2.5 + 4) = −1.5             → 3.5    h = (−2.5, −2)
    # nobody:   h̄ = −2.25, and nothing to correct it by              → 1.25
    # client 1: Δ = 1.375: −2.25 + (1.375 + 2) = 1.125               → 2.375  h = (−2.5, 1.375)
    # both:     h̄ = −0.5625; Δ = −1.1875, 0.8125:
    #           −0.5625 + ((−1.1875 + 2.5) + (0.8125 − 1.375))/2 = −0.1875    → 2.1875
    run = walk(fedvarp(local=HALF), [0, 4], [[1, 1], [1, 0], [0, 0], [0, 1], [1, 1]], 8)
    assert run == [5, 3.5, 1.25, 2.375, 2.1875]


def test_with_a_server_step_size() -> None:
    # 8 + 2·(−3) → 2; then h̄ = −3, Δ = −1: 2 + 2·(−3 + (−1 + 4)) → 2
    assert walk(fedvarp(server_lr=2.0, local=HALF), [0, 4], [[1, 1], [1, 0]], 8) == [2, 2]


def test_clusters_by_hand() -> None:
    # Clients at 0, 4 (cluster 0) and 8, 4 (cluster 1), from 8, half the way.
    # 0, 1, 2: Δ = −4, −2, 0: step −2                       8 → 6   clusters (−3, 0),   h̄ = −1.5
    # 1, 3:    Δ = −1, −1: −1.5 + ((−1 + 3) + (−1 − 0))/2 = −1 → 5   clusters (−1, −1),  h̄ = −1
    # 0:       Δ = −2.5: −1 + (−2.5 + 1) = −2.5                → 2.5 clusters (−2.5, −1), h̄ = −1.75
    # nobody:  −1.75                                           → 0.75
    # 2:       Δ = 3.625: −1.75 + (3.625 + 1) = 2.875          → 3.625
    trace = [[1, 1, 1, 0], [0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]
    run = walk(fedvarp(clusters=[0, 0, 1, 1], local=HALF), [0, 4, 8, 4], trace, 8)
    assert run == [6, 5, 2.5, 0.75, 3.625]


@pytest.mark.parametrize("seed", range(5))
def test_its_formula_on_random_traces(seed) -> None:
    draw = np.random.default_rng(seed)
    N, T, eta = 5, 40, 0.7
    z, mask = draw.normal(size=N), draw.random((T, N)) < draw.random(N)
    x, y, expected = 3.0, np.zeros(N), []
    for came in mask:
        deltas = (z - x) / 2
        correction = (deltas - y)[came].mean() if came.any() else 0
        x += eta * (y.mean() + correction)
        y[came] = deltas[came]
        expected.append(x)
    run = walk(fedvarp(server_lr=eta, local=HALF), z, mask, 3.0)
    np.testing.assert_allclose(run, expected, rtol=1e-10)


@pytest.mark.parametrize("clusters", [[0, -1], [0.5, 1], [[0], [1]], []])
def test_bad_clusters(clusters) -> None:
    with pytest.raises(InputError, match="clusters"):
        fedvarp(clusters=clusters)


def test_clusters_of_another_population() -> None:
    with pytest.raises(InputError, match="length of clusters is 3; it must be the number of c"):
        walk(fedvarp(clusters=[0, 0, 1], local=HALF), [0, 4], [[1, 1]], 8)
