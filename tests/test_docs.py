"""The snippets and plots of the documentation run, and a new relaxation gets a page."""

import dataclasses
import os
import re
import runpy
import subprocess
import sys

import pytest

from tests import documents, helpers
from tfr_smooth import _keras, rankings, registry

ROOT = documents.ROOT
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
# Their snippets print values and train nothing.
QUICK = {"docs/data.md", "docs/index.md", "docs/losses/baselines.md"}
QUICK |= {page for page in PAGES if page.startswith("docs/relaxations/")} - {"docs/relaxations/your_own.md"}
WITH_SNIPPETS = [page for page in PAGES if documents.snippets(page)]


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (page not in QUICK)) for page in WITH_SNIPPETS]
)
def test_snippets_run_in_order_and_print_the_documented_values(page, tmp_path, capsys):
    program = "\n".join(documents.snippets(page))
    if "tf_ranking" in program:
        helpers.tf_ranking()
    if "tfr_smooth import text" in program and not _keras.IS_KERAS_3:
        pytest.skip("text reranking needs Keras 3")
    # AutoGraph needs the source file.
    path = tmp_path / "page.py"
    path.write_text(program.replace("/tmp/letor", str(tmp_path / "letor")), encoding="utf-8")
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out.splitlines()
    # Numbers at the start of comments after `print` calls.
    claimed = re.findall(r"^print\(.*\)  # (-?\d+\.\d+)\b", program, re.M)
    assert [number for number in claimed if number not in printed] == []


def test_the_first_snippet_of_the_readme_runs_without_warnings():
    command = [sys.executable, "-c", documents.snippets("README.md")[0]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr and "WARNING:tensorflow" not in done.stderr
    by_rating, by_ranker = map(float, re.findall(r"(0\.\d{4}) ±", done.stdout))
    assert by_ranker > by_rating + 0.05


@pytest.mark.slow
def test_the_plot_script_draws_the_plots_of_the_pages(tmp_path):
    command = [sys.executable, "tools/plot_relaxations.py", f"--output_dir={tmp_path}", "--only=approx,softsort"]
    command += ["--lists=3", "--documents=4", "--per_decade=1", "--runs=1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def draw(*more):
        done = subprocess.run([*command, *more], cwd=ROOT, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr

    draw()
    plots = {f"{name}_{plot}" for name in ("approx", "softsort") for plot in ("ranking", "error")}
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    images = {
        f"{name}{variant}.png" for name in plots | {"cost", "sharpening", "trade_off"} for variant in ("", "_dark")
    }
    assert set(files) == images | {"errors.csv", "costs.csv"}
    # A second run draws the stored values.
    draw("--plots=error,cost", "--lists=5")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_only_the_first_loss_and_the_first_metric_of_a_relaxation_show_the_shared_arguments():
    pytest.importorskip("mkdocs.config", reason="MkDocs is only in the stack 'latest'")
    text = runpy.run_path(str(ROOT / "tools" / "mkdocs_hooks.py"))["classes"]("relaxations", "smoothi")
    entries = dict(re.findall(r"^::: tfr_smooth\.\w+\.(\w+)\n((?: +.*\n)*)", text + "\n", re.MULTILINE))
    stems = [pair.stem for pair in registry.PAIRS.values() if pair.ranking is rankings.SmoothI]
    assert list(entries) == [stem + end for end in ("Loss", "Metric") for stem in stems]
    assert [name for name, options in entries.items() if not options] == ["SmoothINDCGLoss", "SmoothINDCGMetric"]
    assert "show_docstring_parameters: false" in entries["SmoothIMAPLoss"]


def test_a_relaxation_without_a_page_gets_one_with_its_formula_and_plots(monkeypatch, tmp_path):
    @dataclasses.dataclass(frozen=True)
    class NewSort(rankings.Ranking):
        """The NewSort ranking: a new kind of indicators."""

        about = dataclasses.replace(rankings.SoftSort.about, prefix="New", title="NewSort", formula="I = s / \\tau")
        temperature: float = 1.0

    monkeypatch.setitem(registry.RANKINGS, "new", NewSort)
    config_base = pytest.importorskip("mkdocs.config", reason="MkDocs is only in the stack 'latest'")
    files = pytest.importorskip("mkdocs.structure.files")
    hooks = runpy.run_path(str(ROOT / "tools" / "mkdocs_hooks.py"))
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "newsort_error.png").touch()
    config = config_base.load_config(str(ROOT / "mkdocs.yml"), docs_dir=str(tmp_path))
    monkeypatch.setattr(config.plugins, "_current_plugin", "hooks", raising=False)  # as in an event of MkDocs
    pages = files.Files([])
    hooks["on_files"](pages, config=config)
    text = pages.get_file_from_path("relaxations/newsort.md").content_string
    for part in (
        "# NewSort\n",
        "$$I = s / \\tau$$",
        "| `temperature` | `1.0` | 0.1, 1, 10, 100 |",
        "newsort_error.png",
    ):
        assert part in text
    assert "::: tfr_smooth.rankings.NewSort\n" in text and "<!-- classes: new -->" in text
    assert "newsort_ranking.png" not in text
    hooks["on_config"](config)
    (section,) = (section["Relaxations"] for section in config.nav if "Relaxations" in section)
    titles = [ranking.__name__ for ranking in registry.RANKINGS.values()]
    assert [title for entry in section[1:-1] for title in entry] == titles and titles[-1] == "NewSort"
