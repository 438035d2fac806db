"""How far all cells together are, and how long it will take: on terminals only."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from turnout.cli.screen import stderr
from turnout.evaluate import Metrics
from turnout.experiments.cells import Place
from turnout.experiments.config import Config
from turnout.experiments.methods import labels
from turnout.experiments.run import Watch
from turnout.simulator import Round


@contextmanager
def progress(config: Config, quiet: bool, jobs: int = 1) -> Iterator[Watch | None]:
    """Something to call after each round; None where nobody looks."""
    console = stderr()
    if quiet or not console.is_terminal:
        yield None
        return
    rounds = config.run.rounds
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
    cells = [(label, seed) for seed in config.run.seeds for label in labels(config.algorithm)]
    with bar:
        task = bar.add_task("starting", total=rounds * len(cells), note="")
        heard: dict[int, int] = {}

        def watch(cell: Place, happened: Round, metrics: Metrics | None) -> None:
            # Cells begin in their order, and only the last so many can be at work: the others are
            # over, also those that diverged early, or were done before this run was resumed.
            number = cells.index((cell.label, cell.seed))
            heard.pop(number, None)
            heard[number] = happened.round + 1
            working = list(heard)[-jobs:]
            over = max(heard) + 1 - len(working)
            bar.update(
                task,
                completed=over * rounds + sum(heard[each] for each in working),
                description=f"{cell.name} ({number + 1} of {len(cells)})"
                if jobs == 1
                else f"{len(working)} at work, {over} of {len(cells)} done",
            )
            if metrics is not None and "test_accuracy" in metrics:
                bar.update(task, note=f"{100 * metrics['test_accuracy']:.1f} %")

        yield watch
