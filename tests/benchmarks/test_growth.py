"""The growth script runs, writes its report and plots, and fits the documented exponent."""

import math
import os
import subprocess
import sys

import pytest
from PIL import Image

from tests.benchmarks import scripts
from tfr_smooth import losses

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("growth")
    plot = folder / "new" / "growth.png"
    sizes = ["--lengths=16,4,8", "--lists=2", "--batches=1,2", "--documents=4", f"--plot={plot}"]
    report, printed = scripts.run("growth.py", "--names=smoothi_ndcg@2,list_net,soft_err", *sizes, folder=folder)
    return report, printed, plot


def test_sizes_are_in_ascending_order_and_the_exponent_is_the_log_slope_of_the_larger_ones(measured):
    results = measured[0]["results"]
    names = ["smoothi_ndcg@2", "list_net", "soft_err"]
    assert [(r["loss"], r["growth"]) for r in results] == [(n, g) for n in names for g in ("documents", "lists")]
    for result in results:
        times = result["milliseconds"]
        assert list(times) == (["4", "8", "16"] if result["growth"] == "documents" else ["1", "2"])
        assert min(times.values()) > 0.0
        if result["growth"] == "documents":  # the last two of three sizes
            assert result["exponent"] == pytest.approx(math.log2(times["16"] / times["8"]))
        else:
            assert result["exponent"] is None


def test_the_table_shows_the_documented_costs(measured):
    _, printed, _ = measured
    for label, name, cutoff in (("smoothi_ndcg@2", "smoothi_ndcg", ", K = 2"), ("list_net", "list_net", "")):
        assert f"| {label} | {losses.TABLE[name].time}{cutoff} |" in printed


def test_the_plots_are_small_images_that_are_not_blank(measured):
    for path in (measured[2], measured[2].with_name("growth_dark.png")):
        with Image.open(path) as image:
            assert image.format == "PNG" and image.width >= 700
            assert len(image.convert("RGB").getcolors(image.width * image.height)) > 5  # of both panels and the lines
        assert path.stat().st_size < 60_000


def printed_from(report, *arguments):
    """Returns what the script prints from a stored report."""
    command = [sys.executable, str(scripts.BENCHMARKS / "growth.py"), f"--report={report}", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("|") > 20
    return done.stdout.strip()


def test_a_report_is_plotted_without_measuring_again(measured):
    plot = measured[2].with_name("again.png")
    assert printed_from(measured[2].parents[1] / "report.json", f"--plot={plot}") in measured[1]
    assert plot.read_bytes() == measured[2].read_bytes()


def test_the_published_table_is_that_of_the_stored_report():
    table = printed_from(scripts.BENCHMARKS.parent / "docs/images/growth.json")
    assert table in (scripts.BENCHMARKS / "README.md").read_text(encoding="utf-8")


def test_larger_sizes_are_skipped_once_a_step_takes_too_long(tmp_path):
    sizes = ["--lengths=4,8,16", "--batches=1,2,4", "--most_seconds=0"]
    report, _ = scripts.run("growth.py", "--names=list_net", *sizes, folder=tmp_path)
    assert [list(result["milliseconds"]) for result in report["results"]] == [["4"], ["1"]]
