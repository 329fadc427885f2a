"""The tables in the documentation match the results in docs/results."""

import json
import pathlib

import pandas as pd
import pytest
from scipy import stats

import experiments
from experiments import tables
from experiments.rankers import RANKERS

DOCS = pathlib.Path(__file__).parents[2] / "docs"
# Folder -> page with its tables, and the measures of each.
LETOR = ("results.md", ("ndcg", "map"))
CUTOFFS = ("results.md", ("ndcg_cut_5", "ndcg_cut_10", "ndcg", "map"))
TEXT = ("text_results.md", ("map", "ndcg_cut_10"))
PAGES = {"mq2007": LETOR, "mq2008": LETOR, "mq2008_metrics": CUTOFFS}
PAGES |= {"cranfield": TEXT, "cranfield_cross_encoder": TEXT, "npl": TEXT, "wikiqa": ("text_results.md", None)}
# Folders whose data sets share one table -> the data set and the measure of each column.
COLUMNS = {
    "wikiqa": {
        "WikiQA, MAP": ("wikiqa", "map"),
        "2019, BM25": ("dl19_bm25", "ndcg_cut_10"),
        "2019, RepLLaMA": ("dl19_repllama", "ndcg_cut_10"),
        "2020, BM25": ("dl20_bm25", "ndcg_cut_10"),
        "2020, RepLLaMA": ("dl20_repllama", "ndcg_cut_10"),
    }
}
FOLDERS = sorted(path for path in (DOCS / "results").iterdir() if path.is_dir())


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_page_contains_the_tables_of_the_results(folder):
    results = experiments.read_results(folder)
    name, measures = PAGES[folder.name]
    page = (DOCS / name).read_text(encoding="utf-8")
    compared = {
        dataset: tables.compare(results, dataset, samples=100) for dataset in results.queries["dataset"].unique()
    }
    if folder.name in COLUMNS:
        columns = COLUMNS[folder.name].items()
        chosen = [
            compared[dataset].query("measure == @measure").assign(measure=title)
            for title, (dataset, measure) in columns
        ]
        compared = {"all": pd.concat(chosen)}
    for comparison in compared.values():
        assert tables.format_table(comparison, "markdown", measures).strip() in page


@pytest.mark.parametrize("name", ["mq2007", "mq2008", "mq2008_metrics"])
def test_the_settings_of_a_study_repeat_it(name):
    """The candidates are the published ones, except those of `Ranker()`, whose defaults have changed."""
    folder = DOCS / "results" / name
    config = experiments.read_config(folder / "study.json")
    jobs = experiments.read_results(folder).jobs
    assert {entry.label for entry in config["entries"]} == set(jobs["ranker"])
    for entry in config["entries"]:
        if entry.label != "Ranker()":
            defaults = RANKERS[entry.ranker].defaults
            published = [json.loads(each) for each in jobs.loc[jobs["ranker"] == entry.label, "settings"].unique()]
            candidates = entry.candidates(config["grid"], config["settings"])
            assert len(published) == len(candidates), entry
            assert all({**defaults, **each} in [{**defaults, **other} for other in candidates] for each in published)


# Losses of the two studies of many data sets, and their rows in the tables.
TITLES = {
    "mean_squared": "mean squared error",
    "softmax": "softmax",
    "list_mle": "ListMLE",
    "lambda_loss": "LambdaLoss",
    "soft_ndcg": "SoftNDCG",
    "approx_ndcg": "ApproxNDCG",
    "neuralsort_ndcg": "NeuralSort-NDCG",
    "smoothi_ndcg": "SmoothI-NDCG",
    "lapsum_ndcg": "LapSum-NDCG",
    "sortingnetwork_ndcg": "SortingNetwork-NDCG",
    "sinkhorn_scaled": "NeuralSort-NDCG, 20 Sinkhorn steps",
    "pl_rank_ndcg": "PL-Rank-NDCG",
}


@pytest.mark.parametrize(("name", "comparisons"), [("losses", 14), ("relaxations", 16)])
def test_the_page_contains_the_tables_of_losses(name, comparisons):
    """Means of NDCG@10; significance against softmax by paired t-tests over queries, with Bonferroni's correction."""
    results = pd.read_csv(DOCS / "results" / f"{name}.csv.gz", dtype={"query": str})
    page = (DOCS / "results.md").read_text(encoding="utf-8")

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
                assert f"| {TITLES[loss]} | {' | '.join(cells)} |" in page


def test_the_page_contains_the_comparisons_on_real_tables():
    """Means over queries of the means of seeds; paired t-tests."""
    results = pd.read_csv(DOCS / "results" / "tables.csv.gz", dtype={"query": str})
    page = (DOCS / "table_results.md").read_text(encoding="utf-8")
    for table, queries in results.groupby("table"):
        for trees in ("LightGBM", "LightGBM with hand-made columns"):
            if queries[trees].notna().all():
                p_value = stats.ttest_rel(queries["Ranker"], queries[trees]).pvalue
                shown = f"{p_value:.2g}" if p_value >= 1e-4 else "< 0.0001"
                means = f"{queries['Ranker'].mean():.4f} | {queries[trees].mean():.4f}"
                assert f"| {table} | {trees} | {means} | {shown} |" in page
