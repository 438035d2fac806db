"""Data sets by name from the Hub, with the optional extra `turnout[hub]`."""

from collections.abc import Callable, Sequence
from pathlib import Path

from turnout.data.folder import split_files
from turnout.errors import InputError

Download = Callable[..., str]
"""`huggingface_hub.snapshot_download`, or what stands in for it."""

# Where a repository holds no Parquet files itself, the Hub keeps its own conversion.
_REVISIONS = ("main", "refs/convert/parquet")


def snapshot(
    repository: str,
    splits: Sequence[str],
    config: str | None = None,
    download: Download | None = None,
) -> Path:
    """A local folder with the Parquet files of these splits, fetched if it is not there yet."""
    fetch = _client(repository) if download is None else download
    inside = "*" if config is None else f"*{config}/*"
    patterns = [f"{inside}{split}*.parquet" for split in splits]
    problem = ""
    # What was fetched before needs no network, so look there first.
    for local in (True, False):
        for revision in _REVISIONS:
            try:
                folder = fetch(
                    repo_id=repository,
                    repo_type="dataset",
                    revision=revision,
                    allow_patterns=patterns,
                    local_files_only=local,
                )
                for split in splits:
                    split_files(Path(folder), split, config)
                return Path(folder)
            except Exception as error:  # of the network, the Hub, or a snapshot without the files
                # The first answer of the Hub itself says most.
                problem = problem if problem or local else str(error).strip().split("\n")[0]
    raise InputError(
        f"data set {repository!r} could not be fetched from the Hub ({problem}); it must be an "
        "existing repository with Parquet files, or a folder in TURNOUT_DATA"
    )


def _client(repository: str) -> Download:
    try:
        from huggingface_hub import (  # type: ignore[import-not-found,unused-ignore]
            snapshot_download,
        )
    except ImportError:
        name = repository.rpartition("/")[2]
        raise InputError(
            f"data set {repository!r} is on the Hub, which needs `pip install turnout[hub]`; or set "
            f"TURNOUT_DATA to a folder that holds {name}/train.parquet and {name}/test.parquet"
        ) from None
    fetch: Download = snapshot_download
    return fetch
