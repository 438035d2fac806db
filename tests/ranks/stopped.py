"""One rank of several at an experiment that the first is asked to stop in the midst of."""

import sys
from pathlib import Path

from turnout.experiments.interrupt import Asked, Interrupted
from turnout.experiments.read import read
from turnout.experiments.run import run_experiment
from turnout.ranks import found
from turnout.simulator import Round


def main(path: Path, out: Path) -> None:
    asked = Asked()

    def watch(cell: object, happened: Round, metrics: object) -> None:
        asked.stop = found().first and happened.round == 3

    try:
        run_experiment(read(path), out, watch, asked)
    except Interrupted:
        sys.stdout.write("stopped\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
