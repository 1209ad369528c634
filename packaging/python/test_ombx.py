"""Tests of the module ombx with pandas: python -m unittest packaging/python/test_ombx.py (`packaging/try-wheel` runs it).

The variable RESULTS names result files of `ombx run`, separated by blanks, each with several launches. The
variable LINKS names one of `ombx links`.
"""

import json
import os
import unittest

import ombx
import pandas
from pandas.api import types

FILES = os.environ["RESULTS"].split()


class Read(unittest.TestCase):
    def test_each_case_is_a_row_with_the_types_of_the_documentation(self):
        with open(FILES[0], encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        cases = {record["key"] for record in records if record["kind"] == "case"}
        rows = ombx.read(FILES[0])
        self.assertEqual(set(rows["key"]), cases)
        for name in rows.columns:
            column = rows[name]
            if name in ombx.TEXTS:
                self.assertTrue(types.is_string_dtype(column) and column.notna().all(), name)
            elif name == "publishable":
                self.assertTrue(types.is_bool_dtype(column), name)
            elif name in ombx.COUNTS:
                self.assertEqual(str(column.dtype), "Int64", name)
            else:
                self.assertEqual(str(column.dtype), "float64", name)

    def test_the_interval_contains_the_median(self):
        rows = ombx.read(FILES[0])
        rows = rows[rows["outcome"] == "ok"].dropna(subset=["ci95_low_ns"])
        self.assertGreater(len(rows), 0)
        self.assertTrue((rows["ci95_low_ns"] <= rows["median_ns"]).all())
        self.assertTrue((rows["median_ns"] <= rows["ci95_high_ns"]).all())

    def test_several_files_are_launches_of_one_result(self):
        one, all_files = ombx.read(FILES[0]), ombx.read(*FILES)
        self.assertIsInstance(all_files, pandas.DataFrame)
        self.assertEqual(set(one["key"]), set(all_files["key"]))

    def test_launches_and_samples_have_frames(self):
        with open(FILES[0], encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        rows = [record for record in records if record["kind"] in ("launch", "case") and record.get("samples")]
        launches = ombx.launches(FILES[0])
        self.assertEqual(len(launches), len(rows))
        self.assertEqual(launches["median_ns"].tolist(), [row["summary"]["median_ns"] for row in rows])
        samples = ombx.samples(FILES[0])
        of_median = samples[samples["of"] == "median"]
        self.assertEqual(of_median["elapsed_ns"].sum(), sum(sum(part["elapsed_ns"]) for row in rows for part in row["samples"]))
        self.assertEqual(str(samples["elapsed_ns"].dtype), "Int64")

    def test_links_have_a_frame(self):
        links = os.environ.get("LINKS")
        if not links:
            self.skipTest("LINKS names no file")
        rows = ombx.read(links)
        self.assertTrue((rows["from_host"] != "").any() and rows["median_ns"].notna().any())
        self.assertEqual(str(rows["from"].dtype), "Int64")

    def test_mistakes_have_the_message_of_ombx(self):
        with self.assertRaisesRegex(ValueError, "at least one result file"):
            ombx.read()
        with self.assertRaisesRegex(ValueError, "missing.jsonl"):
            ombx.read("missing.jsonl")


if __name__ == "__main__":
    unittest.main()
