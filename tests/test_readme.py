"""The README's Python snippets run, in order, as one program."""

import pytest

from tests import documents

SNIPPETS = documents.snippets("README.md")


def test_the_first_snippet_runs_alone_in_ten_lines(tmp_path):
    lines = [line for line in SNIPPETS[0].splitlines() if line.strip()]
    assert len(lines) <= 10
    done = documents.run(SNIPPETS[0], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "val_ndcg" in done.stdout
    assert "Warning" not in done.stderr and "WARNING:tensorflow" not in done.stderr
    assert "Unknown" not in done.stdout  # the progress bar knows the number of batches from the start


@pytest.mark.slow
def test_all_snippets_run_in_order(tmp_path):
    assert len(SNIPPETS) >= 2
    done = documents.run("\n".join(SNIPPETS), tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "letor" / "export" / "1" / "saved_model.pb").exists()


def test_linked_files_exist():
    assert "](" in (documents.ROOT / "README.md").read_text(encoding="utf-8")
    assert documents.links_to_nothing("README.md") == []


def test_it_is_short():
    text = (documents.ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 600
