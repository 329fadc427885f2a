"""The README: its Python snippets run in order as one program, its links work, and it is short."""

import pytest

from tests import documents

SNIPPETS = documents.snippets("README.md")


def test_the_first_snippet_has_at_most_ten_lines_and_runs_without_warnings(tmp_path):
    lines = [line for line in SNIPPETS[0].splitlines() if line.strip()]
    assert len(lines) <= 10
    done = documents.run(SNIPPETS[0], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "val_ndcg" in done.stdout
    assert "Warning" not in done.stderr and "WARNING:tensorflow" not in done.stderr
    assert "Unknown" not in done.stdout  # The progress bar shows the number of batches from the start.


@pytest.mark.slow
def test_all_snippets_run_in_order(tmp_path):
    assert len(SNIPPETS) >= 2
    done = documents.run("\n".join(SNIPPETS), tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "letor" / "export" / "1" / "saved_model.pb").exists()


def test_relative_links_point_to_existing_files():
    assert "](" in (documents.ROOT / "README.md").read_text(encoding="utf-8")
    assert documents.broken_links("README.md") == []


def test_the_readme_has_at_most_600_words():
    text = (documents.ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 600
