"""Participation logs as files: a mask as .npy, or (round, client) pairs as CSV or Parquet.

The sparse forms have the columns `round`, `client` and, where not all updates arrived, `delivered`
(1 or 0). What pairs cannot say, how many rounds and clients there are in all, stands in the first
line of the CSV (`# rounds=30 clients=5`) or in the schema of the Parquet file. A .npy file holds
the [rounds, clients] table of delivered updates, so it forgets who was asked in vain.
"""

from pathlib import Path as FilePath

import numpy as np
from numpy.typing import NDArray

from turnout.errors import InputError, choose, require
from turnout.participation.log import Log, from_mask
from turnout.participation.table import Path, Table, read_table

_FORMS = (".npy", ".csv", ".parquet")
_TOTALS = ("rounds", "clients")


def export(log: Log, path: Path) -> None:
    """Write a log in the form that the ending of `path` names."""
    form = choose("ending of the file", FilePath(path).suffix, _FORMS)
    write = {".npy": _write_npy, ".csv": _write_csv, ".parquet": _write_parquet}[form]
    try:
        write(log, path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


def load(path: Path) -> Log:
    """Read a log that `export` wrote, or any CSV or Parquet file with these columns.

    Where the file does not say how many rounds and clients there are, the last ones seen are the
    last; `sized` adds others.
    """
    form = choose("ending of the file", FilePath(path).suffix, _FORMS)
    if form == ".npy":
        return _read_npy(path)
    return _log(_read_csv(path) if form == ".csv" else _read_parquet(path))


def _columns(log: Log) -> dict[str, NDArray[np.int64]]:
    columns = {"round": log.round, "client": log.client}
    if not log.delivered.all():
        columns["delivered"] = log.delivered.astype(np.int64)
    return columns


def _write_npy(log: Log, path: Path) -> None:
    np.save(path, log.mask())


def _read_npy(path: Path) -> Log:
    try:
        mask = np.load(path, allow_pickle=False)
    except (
        Exception
    ) as error:  # numpy takes the header for Python, with all that may be wrong in it
        raise _unreadable(path, ".npy", error) from error
    return from_mask(mask)


def _write_csv(log: Log, path: Path) -> None:
    columns = _columns(log)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"# rounds={log.rounds} clients={log.clients}\n{','.join(columns)}\n")
        file.writelines(",".join(map(str, row)) + "\n" for row in rows)


def _read_csv(path: Path) -> Table:
    return read_table(path, ["round", "client"], ["delivered"])


def _write_parquet(log: Log, path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    notes = {"rounds": str(log.rounds), "clients": str(log.clients)}
    parquet.write_table(pyarrow.table(_columns(log)).replace_schema_metadata(notes), path)


def _read_parquet(path: Path) -> Table:
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
        names = table.column_names
        notes = table.schema.metadata or {}
        totals = {k: notes[k.encode()].decode() for k in _TOTALS if k.encode() in notes}
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
        raise _unreadable(path, "Parquet", error) from error
    columns: dict[str, NDArray[np.float64]] = {}
    for name in ("round", "client", "delivered"):
        if name in names:
            kind = str(table[name].type)
            field = f"the type of {name} in {path}"
            require(kind == "bool" or "int" in kind, field, kind, "a type of whole numbers")
            columns[name] = table[name].to_numpy().astype(np.float64)
        else:
            right = f"ones with a column {name!r}"
            require(name == "delivered", f"the columns of {path}", ", ".join(names), right)
    return Table(path, np.arange(1, len(table) + 1), columns, totals, unit="row")


def _unreadable(path: Path, form: str, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
    return InputError(f"{path} cannot be read as {form}: {reason}")


def _log(table: Table) -> Log:
    round, client = table.rows("round"), table.rows("client")
    delivered = table.columns.get("delivered", np.ones(len(round)))
    if "delivered" in table.columns:
        table.require((delivered == 0) | (delivered == 1), "delivered", "1 (it arrived) or 0")
    order = np.lexsort((client, round))
    same = (np.diff(round[order]) == 0) & (np.diff(client[order]) == 0)
    for k in np.flatnonzero(same)[:1].tolist():
        first, second = order[k : k + 2]  # the sort keeps the file's order
        other = f"{table.unit} {table.lines[first]}"
        right = f"another than in {other}, which is of the same round: a client is asked once"
        require(False, table.field("client", int(second)), int(client[second]), right)
    return Log(
        _total(table, "rounds", round),
        _total(table, "clients", client),
        round[order],
        client[order],
        delivered[order] == 1,
    )


def _total(table: Table, note: str, column: NDArray[np.int64]) -> int:
    if note not in table.notes:
        require(len(column) > 0, f"the number of rows in {table.path}", 0, "at least 1")
        return int(column.max()) + 1
    least = int(column.max(initial=0)) + 1
    text = table.notes[note]
    right = f"a whole number of at least {least}"
    require(text.isdecimal() and int(text) >= least, f"{note} noted in {table.path}", text, right)
    return int(text)
