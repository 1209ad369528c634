"""Results of ombx as frames of pandas.

    import ombx
    rows = ombx.read("r.jsonl")
    print(rows[["bench", "bytes", "median_ns", "ci95_low_ns", "ci95_high_ns"]])

The columns are those of ``ombx show --format csv``, which FORMAT.md of ombx describes. Columns in TEXTS hold text, with empty texts where a row
has none, and ``publishable`` holds booleans. All others are numbers (float64), NaN where a row has none.
"""

import io
import os
import shutil
import subprocess
import sys
import typing

if typing.TYPE_CHECKING:
    import pandas

__all__ = ["read", "TEXTS"]

#: Columns that hold text.
TEXTS: typing.Tuple[str, ...] = (
    "run",
    "bench",
    "key",
    "axes",
    "metric",
    "across",
    "outcome",
    "reason",
    "check",
    "library",
    "trust",
    "figures",
    "started",
    "levels",
    "interval",
    "other_states",
)


def _program() -> str:
    beside = os.path.join(os.path.dirname(sys.executable), "ombx")
    found = os.environ.get("OMBX") or (beside if os.access(beside, os.X_OK) else shutil.which("ombx"))
    if not found:
        raise FileNotFoundError("ombx is neither beside python nor in PATH: set the variable OMBX to its path")
    return found


def read(*paths: "typing.Union[str, os.PathLike[str]]") -> "pandas.DataFrame":
    """Returns the rows of result files as a frame: a row for each case, over all launches.

    Several paths are launches of one result, as for ``ombx show``. Raises ValueError with the message of ombx if a file cannot be read.
    """
    import pandas

    if not paths:
        raise ValueError("give at least one result file")
    command = [_program(), "show", "--format", "csv", *map(os.fspath, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        raise ValueError(done.stderr.strip() or f"ombx show ended with exit code {done.returncode}")
    rows = pandas.read_csv(io.StringIO(done.stdout), dtype={name: str for name in TEXTS}, keep_default_na=False, na_values=[""])
    for name in rows.columns:
        if name in TEXTS:
            rows[name] = rows[name].fillna("")
        elif name == "publishable":
            rows[name] = rows[name].fillna(False).astype(bool)
        else:
            rows[name] = pandas.to_numeric(rows[name]).astype(float)
    return rows
