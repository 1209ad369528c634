"""Results of ombx as frames of pandas.

    import ombx
    rows = ombx.read("r.jsonl")
    print(rows[["bench", "bytes", "median_ns", "ci95_low_ns", "ci95_high_ns"]])

``read`` has a row for each case over all launches, or for each link of a sweep; ``launches`` one for each case and launch, and ``samples`` one for
each sample. The columns of ``read`` are those of ``ombx show --format csv``, which FORMAT.md of ombx describes. Columns in TEXTS hold text, with
empty texts where a row has none, and ``publishable`` holds booleans. Columns in COUNTS are integers (Int64), and all others numbers (float64);
both are missing where a row has none.
"""

import io
import json
import os
import shutil
import subprocess
import sys
import typing

if typing.TYPE_CHECKING:
    import pandas

__all__ = ["read", "launches", "samples", "TEXTS", "COUNTS"]

Path = typing.Union[str, "os.PathLike[str]"]

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
    "from_host",
    "to_host",
    "pattern",
    "retest",
    "verdict",
    "part",
    "hosts",
    "sentence",
    "of",
)

#: Columns that hold integers.
COUNTS: typing.Tuple[str, ...] = (
    "bytes",
    "depth",
    "pairs",
    "ranks",
    "n",
    "batch",
    "launch",
    "launches",
    "tail_n",
    "checked",
    "launches_in_state",
    "runs",
    "from",
    "to",
    "round",
    "rank",
    "sample",
    "elapsed_ns",
)


def _program() -> str:
    beside = os.path.join(os.path.dirname(sys.executable), "ombx")
    found = os.environ.get("OMBX") or (beside if os.access(beside, os.X_OK) else shutil.which("ombx"))
    if not found:
        raise FileNotFoundError("ombx is neither beside python nor in PATH: set the variable OMBX to its path")
    return found


def _shown(form: str, paths: typing.Sequence[Path]) -> str:
    if not paths:
        raise ValueError("give at least one result file")
    command = [_program(), "show", "--format", form, *map(os.fspath, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        raise ValueError(done.stderr.strip() or f"ombx show ended with exit code {done.returncode}")
    return done.stdout


def _typed(rows: "pandas.DataFrame") -> "pandas.DataFrame":
    import pandas

    for name in rows.columns:
        if name in TEXTS:
            rows[name] = rows[name].fillna("").astype(str)
        elif name == "publishable":
            rows[name] = rows[name] == "true"
        else:
            numbers = pandas.to_numeric(rows[name])
            rows[name] = numbers.astype("Int64" if name in COUNTS else float)
    return rows


def read(*paths: Path) -> "pandas.DataFrame":
    """Returns the rows of result files as a frame: a row for each case, over all launches; of a file of ``ombx links`` a row for each direction
    of a link in each launch, and below them a row for each sentence of the verdict.

    Several paths are launches of one result, as for ``ombx show``. Raises ValueError with the message of ombx if a file cannot be read, and if
    the files have rows of benchmarks and of links, which have other columns.
    """
    import pandas

    text = _shown("csv", paths)
    if "\nrun,from,to," in text:
        raise ValueError("the files have rows of benchmarks and of links: read them one by one")
    return _typed(pandas.read_csv(io.StringIO(text), dtype=str, keep_default_na=False, na_values=[""]))


def _records(paths: typing.Sequence[Path]) -> typing.Iterator[typing.Tuple[dict, dict]]:
    """Returns the rows of single launches as the files have them, each with its run."""
    run: dict = {}
    for line in _shown("jsonl", paths).splitlines():
        record = json.loads(line)
        if record["kind"] == "run":
            run = record
        elif record["kind"] in ("launch", "case") and record.get("samples"):
            yield run, record


def _of_row(run: dict, row: dict) -> dict:
    launch = run.get("plan", {}).get("launch")
    named = {name: row.get(name) for name in ("bench", "key", "bytes", "depth", "pairs", "ranks", "metric", "outcome")}
    axes = ";".join(f"{name}={value}" for name, value in row.get("axes", {}).items())
    return {"run": run.get("run", ""), "launch": int(launch) if launch else 1, **named, "axes": axes}


def launches(*paths: Path) -> "pandas.DataFrame":
    """Returns a frame with a row for each case in each launch: its median, its interval within the launch, and percentiles."""
    import pandas

    def of(run: dict, row: dict) -> dict:
        summary, rates = row.get("summary") or {}, row.get("rates") or {}
        low, high = summary.get("ci95_ns") or (None, None)
        figures = {"n": summary.get("n"), "median_ns": summary.get("median_ns"), "ci95_low_ns": low, "ci95_high_ns": high}
        figures.update(sample_min_ns=summary.get("min_ns"), mean_ns=summary.get("mean_ns"), sample_max_ns=summary.get("max_ns"))
        for name in ("p95", "p99", "p999"):
            figures[f"iteration_{name}_ns"] = (summary.get(name) or {}).get("value_ns")
        figures["mb_per_s"] = (rates.get("mb_per_s") or {}).get("median")
        figures["trust"] = ";".join(mark["code"] for mark in row.get("trust", []))
        return {**_of_row(run, row), **figures}

    return _typed(pandas.DataFrame([of(run, row) for run, row in _records(paths)]))


def samples(*paths: Path) -> "pandas.DataFrame":
    """Returns a frame with a row for each sample of each rank: ``elapsed_ns`` of ``batch`` iterations. ``of`` is ``median`` for the samples that
    the median comes from, and ``percentiles`` for those of the separate pass of single iterations."""
    import pandas

    def of(run: dict, row: dict) -> typing.Iterator[dict]:
        named = _of_row(run, row)
        for kind, name in (("median", "samples"), ("percentiles", "tail")):
            for ranks in row.get(name, []):
                of_rank = {**named, "of": kind, "rank": ranks["rank"], "batch": ranks["batch"]}
                for number, elapsed in enumerate(ranks["elapsed_ns"]):
                    yield {**of_rank, "sample": number, "elapsed_ns": elapsed}

    return _typed(pandas.DataFrame([sample for run, row in _records(paths) for sample in of(run, row)]))
