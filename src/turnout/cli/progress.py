"""How far all cells together are, and how long it will take: on terminals only."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from turnout.cli.screen import stderr
from turnout.evaluate import Metrics
from turnout.experiments.cells import Cell
from turnout.experiments.config import Config
from turnout.experiments.run import Watch
from turnout.simulator import Round


@contextmanager
def progress(config: Config, quiet: bool) -> Iterator[Watch | None]:
    """Something to call after each round; None where nobody looks."""
    console = stderr()
    if quiet or not console.is_terminal:
        yield None
        return
    rounds, cells = config.run.rounds, len(config.algorithm) * len(config.run.seeds)
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rounds,"),
        TimeRemainingColumn(compact=True),
        TextColumn("left  {task.fields[note]}", markup=False),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task("starting", total=rounds * cells, note="")
        place: dict[tuple[str, int], int] = {}

        def watch(cell: Cell, happened: Round, metrics: Metrics | None) -> None:
            # By cells begun, not rounds played: a diverged cell leaves the rest of its rounds out.
            begun = place.setdefault((cell.label, cell.seed), len(place))
            bar.update(
                task,
                completed=begun * rounds + happened.round + 1,
                description=f"{cell.label}, seed {cell.seed} ({begun + 1} of {cells})",
            )
            if metrics is not None and "test_accuracy" in metrics:
                bar.update(task, note=f"{100 * metrics['test_accuracy']:.1f} %")

        yield watch
