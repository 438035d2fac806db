"""How often the audit names the right process: `python -m tests.audit.hits [DRAWS]` prints a table.

A row a size of federation and log, from too little data to plenty; the documentation shows it.
"""

import sys

from tests.audit.processes import KNOWN, drawn

from turnout.audit.process import fit

SIZES = [
    (5, 100), (5, 300), (5, 1000), (5, 3000), (20, 100), (20, 300), (20, 2000), (50, 200), (50, 500),
    (300, 100), (300, 300), (300, 1000),
]  # fmt: skip


def hits(name: str, clients: int, rounds: int, draws: int) -> int:
    """Of so many drawn logs, those whose process the audit names."""
    return sum(
        fit(drawn(name, clients, rounds, seed)).name == KNOWN[name][1] for seed in range(draws)
    )


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print("clients  rounds  " + "  ".join(KNOWN))  # noqa: T201
    for clients, rounds in SIZES:
        found = [f"{hits(name, clients, rounds, draws):{len(name)}}" for name in KNOWN]
        print(f"{clients:7}  {rounds:6}  " + "  ".join(found), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
