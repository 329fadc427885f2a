"""The tables in the documentation match the results in docs/results."""

import pandas as pd
import pytest
from scipy import stats

import experiments
from experiments import tables
from experiments.titles import ranker_title
from tests.helpers.documents import ROOT, read

RESULTS = ROOT / "docs" / "results"
# Folder -> page with its tables, and the measures of each.
LETOR = ("results.md", ("ndcg", "map"))
CUTOFFS = ("results.md", ("ndcg_cut_5", "ndcg_cut_10", "ndcg", "map"))
TEXT = ("text_results.md", ("map", "ndcg_cut_10"))
PAGES = {"mq2007": LETOR, "mq2008": LETOR, "mq2008_metrics": CUTOFFS}
PAGES |= {"cranfield": TEXT, "cranfield_cross_encoder": TEXT, "npl": TEXT, "wikiqa": ("text_results.md", None)}
# One table of several data sets: the title, data set and measure of each column.
WIKIQA = [("WikiQA, MAP", "wikiqa", "map")]
WIKIQA += [("2019, BM25", "dl19_bm25", "ndcg_cut_10"), ("2019, RepLLaMA", "dl19_repllama", "ndcg_cut_10")]
WIKIQA += [("2020, BM25", "dl20_bm25", "ndcg_cut_10"), ("2020, RepLLaMA", "dl20_repllama", "ndcg_cut_10")]
FOLDERS = sorted(path for path in RESULTS.iterdir() if path.is_dir())


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_page_contains_the_tables_of_the_results(folder):
    results = experiments.read_results(folder)
    name, measures = PAGES[folder.name]
    compared = {each: tables.compare(results, each, samples=100) for each in results.queries["dataset"].unique()}
    if folder.name == "wikiqa":
        chosen = [compared[each].query("measure == @which").assign(measure=title) for title, each, which in WIKIQA]
        compared = {"all": pd.concat(chosen)}
    for comparison in compared.values():
        assert tables.format_table(comparison, "markdown", measures).strip() in read(f"docs/{name}")
    if folder.name.startswith("mq"):  # the settings repeat the study
        entries = experiments.read_config(folder / "study.json")["entries"]
        assert {entry.label for entry in entries} == set(results.jobs["ranker"])


# Losses of the two studies of many data sets, where titles of other rankers differ.
TITLES = {"mean_squared": "mean squared error", "sinkhorn_scaled": "NeuralSort-NDCG, 20 Sinkhorn steps"}
TITLES |= {"softmax": "softmax", "lapsum_ndcg": "LapSum-NDCG", "pl_rank_ndcg": "PL-Rank-NDCG"}
TITLES["sortingnetwork_ndcg"] = "SortingNetwork-NDCG"


@pytest.mark.parametrize(("name", "comparisons"), [("losses", 14), ("relaxations", 16)])
def test_the_page_contains_the_tables_of_losses(name, comparisons):
    """Means of NDCG@10; significance against softmax by paired t-tests over queries, with Bonferroni's correction."""
    results, page = pd.read_csv(RESULTS / f"{name}.csv.gz", dtype={"query": str}), read("docs/results.md")

    def cell(queries, name):
        if name not in queries:
            return "-"
        difference = queries[name] - queries["softmax"]
        significant = name != "softmax" and stats.ttest_1samp(difference, 0.0).pvalue * comparisons < 0.05
        mark = "*" if difference.mean() > 0.0 else "†"
        return f"{queries[name].mean():.4f}{mark if significant else ''}"

    for _, of_network in results.groupby("network"):
        datasets = [queries for _, queries in of_network.groupby("dataset", sort=False)]
        for loss in results.columns[4:]:
            if not loss.startswith("softmax, then "):
                cells = [cell(each, which) for each in datasets for which in (loss, f"softmax, then {loss}")]
                assert f"| {TITLES.get(loss) or ranker_title(loss)} | {' | '.join(cells)} |" in page


def test_the_page_contains_the_comparisons_on_real_tables():
    """Means over queries of the means of seeds; paired t-tests."""
    results = pd.read_csv(RESULTS / "tables.csv.gz", dtype={"query": str})
    for table, queries in results.groupby("table"):
        for trees in ("LightGBM", "LightGBM with hand-made columns"):
            if queries[trees].notna().all():
                p_value = stats.ttest_rel(queries["Ranker"], queries[trees]).pvalue
                shown = f"{p_value:.2g}" if p_value >= 1e-4 else "< 0.0001"
                means = f"{queries['Ranker'].mean():.4f} | {queries[trees].mean():.4f}"
                assert f"| {table} | {trees} | {means} | {shown} |" in read("docs/table_results.md")
