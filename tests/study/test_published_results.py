"""The tables in the documentation match the results in docs/results."""

import pathlib

import pytest

from tfr_smooth import study
from tfr_smooth.study import tables

DOCS = pathlib.Path(__file__).parents[2] / "docs"
# Folder -> page with its table, and the columns; by default, docs/results.md with all measures.
TEXT = ("text_results.md", ("P_1", "P_10", "P_20", "map", "ndcg_cut_10", "ndcg_cut_20", "ndcg"))
PAGES = {"cranfield": TEXT, "cranfield_cross_encoder": TEXT, "npl": TEXT}
PAGES["wikiqa"] = ("text_results.md", ("P_1", "map", "recip_rank", "ndcg_cut_10"))
FOLDERS = sorted(path for path in (DOCS / "results").iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_page_contains_the_tables_of_the_results(folder):
    results = study.read_results(folder)
    name, measures = PAGES.get(folder.name, ("results.md", None))
    page = (DOCS / name).read_text(encoding="utf-8")
    for dataset in results.queries["dataset"].unique():
        table = tables.format_table(tables.compare(results, dataset, samples=100), "markdown", measures)
        assert table.strip() in page
