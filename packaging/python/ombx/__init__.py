"""Results of ombx as tables of pandas.

    import ombx
    rows = ombx.read("r.jsonl")

The columns are those of ``ombx show --format csv``: ``ombx help csv`` describes them.
"""

import io
import os
import shutil
import subprocess
import sys

__all__ = ["read", "TEXTS"]

#: Columns that hold text. All others are numbers, of type ``float64``; a figure that a row does not have is NaN.
TEXTS = ("benchmark", "parameters", "status", "trust", "reason", "publishable")


def _program():
    beside = os.path.join(os.path.dirname(sys.executable), "ombx")
    found = os.environ.get("OMBX") or (beside if os.access(beside, os.X_OK) else shutil.which("ombx"))
    if not found:
        raise FileNotFoundError("ombx is neither beside python nor in PATH; the variable OMBX names it")
    return found


def read(*paths):
    """Returns the rows of result files as a pandas.DataFrame, one row for each case over all launches.

    Several paths are launches of one result, as for ``ombx show``. Raises ValueError with ombx's message if a file cannot be read.
    """
    import pandas

    if not paths:
        raise ValueError("give at least one result file")
    command = [_program(), "show", "--format", "csv", "--", *map(os.fspath, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 4, 5):
        raise ValueError(done.stderr.strip() or f"ombx show ended with exit code {done.returncode}")
    return pandas.read_csv(io.StringIO(done.stdout), comment="#")
