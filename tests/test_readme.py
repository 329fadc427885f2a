"""The README's Python snippets run, in order, as one program."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).absolute().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)


def run(program, folder):
    # Snippets write below /tmp/letor; here that is a folder of the test's own.
    program = program.replace("/tmp/letor", str(folder / "letor"))
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)


def test_the_first_snippet_runs_alone_in_ten_lines(tmp_path):
    lines = [line for line in SNIPPETS[0].splitlines() if line.strip()]
    assert len(lines) <= 10
    done = run(SNIPPETS[0], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "val_ndcg" in done.stdout


def test_all_snippets_run_in_order(tmp_path):
    assert len(SNIPPETS) >= 5
    done = run("\n".join(SNIPPETS), tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "letor" / "export" / "1" / "saved_model.pb").exists()


def test_linked_files_exist():
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
