"""Prints one line about test runs: the number of tests, the reasons of skips, what did not run, and minutes by stack.

python tools/report_tests.py FOLDER    with JUnit files that are named STACK-NUMBER.xml
"""

from __future__ import annotations

import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

# The start of the reason of a test that was not run in time, in conftest.py.
TOO_LATE = "not run"


def counted(counts: collections.Counter[str]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in counts.most_common())


def report(folder: pathlib.Path) -> str:
    """Returns the line."""
    results, reasons, late, minutes = (collections.Counter[str]() for _ in range(4))
    for path in sorted(folder.glob("*.xml")):
        suite = ElementTree.parse(path).getroot()[0]
        minutes[path.stem.rpartition("-")[0]] += float(suite.get("time", 0.0)) / 60.0
        for case in suite.iter("testcase"):
            skip = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                results["failed"] += 1
            elif skip is None:
                results["passed"] += 1
            elif skip.get("type") == "pytest.xfail":
                results["failed as expected"] += 1
            elif skip.get("message", "").startswith(TOO_LATE):
                late["/".join(case.get("classname", "").split(".")[:2])] += 1
            else:
                results["skipped"] += 1
                of_file = re.search(r"Skipped: (.*?)['\"]\)", skip.text or "")  # of a file that is not collected
                reasons[of_file[1] if of_file else skip.get("message", "")] += 1
    parts = [f"{sum(results.values())} tests: {', '.join(f'{count} {name}' for name, count in results.items())}"]
    parts += [f"Skipped: {counted(reasons)}"] * bool(reasons)
    parts += [f"Not run in time: {counted(late)}"] * bool(late)
    parts.append("Minutes: " + ", ".join(f"{name} {value:.1f}" for name, value in minutes.items()))
    return ". ".join(parts)


if __name__ == "__main__":
    print(report(pathlib.Path(sys.argv[1])))
