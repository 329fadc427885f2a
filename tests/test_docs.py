"""The documentation: complete, true where it can run, without a broken link, and a site."""

import ast
import importlib
import inspect
import os
import re
import runpy
import subprocess
import sys

import pytest

from tests import documents
from tfr_smooth import losses, metrics, ops

ROOT = documents.ROOT
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
PACKAGES = ["data", "evaluation", "functional", "losses", "metrics", "ops", "serving", "training"]
BRIDGE = "tf_ranking"  # imports what only one stack has
RELAXATIONS = {"smoothi", "approx", "softrank", "neuralsort", "softsort", "fastsort", "sinkhorn"}
PLOTS = {"ranking", "error", "gradient", "cost"}
# What a stack lacks by nature, for pages that use it.
NEEDED = {"tensorflow_ranking": "TF-Ranking is not on this stack"}
# What the tests of these parts run too.
SLOW_PAGES = {"docs/distributed.md", "docs/serving.md", "docs/training.md"}


def directives(page):
    """The names that mkdocstrings documents on a page."""
    return re.findall(r"^::: (\S+)$", TEXTS[page], re.M)


DOCUMENTED = [name for page in PAGES for name in directives(page)]


def public_names(package):
    module = importlib.import_module(f"tfr_smooth.{package}")
    members = {name: getattr(module, name) for name in module.__all__}
    return {
        f"tfr_smooth.{package}.{name}"
        for name, member in members.items()
        if inspect.isclass(member) or inspect.isfunction(member)
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_class_and_function_is_documented(package):
    names = public_names(package)
    assert names
    assert names - set(DOCUMENTED) == set()


def test_nothing_is_documented_twice_and_nothing_that_is_not_there():
    assert sorted(DOCUMENTED) == sorted(set(DOCUMENTED))
    for name in DOCUMENTED:
        module, _, member = name.rpartition(".")
        if module.rpartition(".")[2] == BRIDGE:
            continue  # seen to by the next test
        assert hasattr(importlib.import_module(module), member), name


def test_the_bridge_to_tf_ranking_is_documented_name_by_name():
    source = (ROOT / "tfr_smooth" / BRIDGE / "__init__.py").read_text(encoding="utf-8")
    assigned = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    names = {f"tfr_smooth.{BRIDGE}.{name}" for name in ast.literal_eval(assigned[0].value)}
    assert names
    assert {name for name in DOCUMENTED if name.startswith(f"tfr_smooth.{BRIDGE}.")} == names


def test_every_loss_and_metric_of_the_tables_is_documented():
    classes = {f"tfr_smooth.losses.{entry.loss.__name__}" for entry in losses.TABLE.values()}
    classes |= {f"tfr_smooth.metrics.{metric.__name__}" for metric in metrics.TABLE.values()}
    assert classes - set(DOCUMENTED) == set()


def test_every_relaxation_has_a_page_with_its_class_and_all_plots():
    exact_or_abstract = {ops.ExactRanking, ops.PositionRanking}
    rankings = {
        name
        for name in ops.__all__
        if inspect.isclass(getattr(ops, name))
        and (hasattr(getattr(ops, name), "relevance") or hasattr(getattr(ops, name), "positions"))
        and getattr(ops, name) not in exact_or_abstract
    }
    pages = {f"docs/relaxations/{name}.md": name for name in RELAXATIONS}
    documented = {name.rpartition(".")[2] for page in pages for name in directives(page)}
    assert len(rankings) == len(pages)
    assert rankings - documented == set()
    for page, name in pages.items():
        shown = set(re.findall(rf"\(\.\./images/{name}_(\w+)\.png\)", TEXTS[page]))
        assert shown == PLOTS, page


def test_every_image_is_shown_and_small():
    images = sorted((ROOT / "docs/images").iterdir())
    shown = {name for text in TEXTS.values() for name in re.findall(r"images/(\w+\.png)", text)}
    assert {image.name for image in images} == shown
    assert [image.name for image in images if image.stat().st_size > 100_000] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page):
    assert documents.links_to_nothing(page) == []


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page in SLOW_PAGES else [])
        for page in PAGES
        if documents.snippets(page)
    ],
)
def test_snippets_run_in_order(page, tmp_path):
    program = "\n".join(documents.snippets(page))
    for module, reason in NEEDED.items():
        if module in program:
            pytest.importorskip(module, reason=reason)
    # From a file, so that tf.function finds the source.
    path = tmp_path / "page.py"
    path.write_text(documents.in_folder(program, tmp_path), encoding="utf-8")
    runpy.run_path(str(path), run_name="__main__")


def test_the_example_of_a_relaxation_has_under_30_lines():
    (example,) = [code for code in documents.snippets("docs/relaxations/your_own.md") if "SuccessiveSoftmax:" in code]
    assert "import tensorflow" in example
    assert len([line for line in example.splitlines() if line.strip()]) < 30


@pytest.mark.slow
def test_the_plots_script_draws_what_the_pages_show(tmp_path):
    command = [sys.executable, "tools/plot_relaxations.py", f"--output_dir={tmp_path}", "--only=approx,softsort"]
    command += ["--plots=ranking,error,gradient,trade_off", "--lists=3", "--documents=4", "--points=3"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    drawn = {path.name for path in tmp_path.iterdir()}
    expected = {f"{name}_{plot}.png" for name in ("approx", "softsort") for plot in ("ranking", "error", "gradient")}
    assert drawn == expected | {"trade_off.png"}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in tmp_path.iterdir())


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; any warning of MkDocs, as of a name or link that leads nowhere, fails the build."""
    pytest.importorskip("mkdocs", reason="MkDocs is in the stack 'latest' alone")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", f"--site-dir={folder}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in folder.rglob("*.html")}


@pytest.mark.slow
def test_every_page_is_in_the_site(site):
    assert {page.removeprefix("docs/").removesuffix(".md") + ".html" for page in PAGES} <= set(site)


@pytest.mark.slow
def test_the_table_of_losses_has_every_name(site):
    rows = re.findall(r"<tr>\s*<td><code>(\w+)</code>", site["losses/index.html"])
    assert rows == list(losses.TABLE)


@pytest.mark.slow
def test_the_table_of_metrics_has_every_name(site):
    rows = re.findall(r"<tr>\s*<td><code>(\w+)</code></td>", site["metrics.html"])
    assert rows == list(metrics.TABLE)


@pytest.mark.slow
def test_formulas_are_rendered(site):
    assert "<mfrac>" in site["relaxations/approx.html"]
    for name, text in site.items():
        assert "arithmatex" not in text and not re.search(r"\\(frac|sum|mathrm|text)\b", text), name


@pytest.mark.slow
def test_nothing_is_fetched_from_outside(site):
    for name, text in site.items():
        assert not re.search(r'<(script|img|iframe)[^>]*src="(https?:)?//|<link[^>]*href="//', text), name
        assert not re.search(r'<link rel="stylesheet"[^>]*href="https?:', text), name
