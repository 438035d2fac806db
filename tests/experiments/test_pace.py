"""Checkpoints are due by the clock, and rarer where they cost much."""

from turnout.experiments.pace import SHARE, SPEED, Pace


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_due_every_so_many_seconds() -> None:
    clock = Clock()
    pace = Pace(30, clock=clock)
    seen = []
    for clock.now in range(0, 100, 10):
        seen.append(pace.due())
        if seen[-1]:
            pace.keep(lambda: None)
    assert seen == [False, False, False, True, False, False, True, False, False, True]


def test_a_dear_checkpoint_is_made_rarer_so_that_its_share_stays_small() -> None:
    clock = Clock()
    pace = Pace(1, clock=clock)

    def write() -> None:
        clock.now += 2

    writing = 0
    while clock.now < 1000:
        clock.now += 0.5
        if pace.due():
            pace.keep(write)
            writing += 2
    assert 0 < writing / clock.now <= SHARE


def test_zero_seconds_means_every_round() -> None:
    pace = Pace(0, 10**12, Clock())
    assert pace.due()
    pace.keep(lambda: None)
    assert pace.due()


def test_the_first_of_a_large_state_waits_until_it_is_worth_its_cost() -> None:
    clock = Clock()
    pace = Pace(30, int(10 * SPEED), clock)  # ten seconds of writing
    seen = []
    for clock.now in range(0, 600, 10):
        seen.append(pace.due())
        if seen[-1]:
            pace.keep(lambda: None)  # it was quick after all
    assert [10 * turn for turn, due in enumerate(seen) if due][:3] == [250, 280, 310]
