"""The scripts that rank files with a trained model, and that evaluate run files."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers import scripts
from tfr_smooth import data, evaluation, models, serving, training

pytestmark = pytest.mark.slow


def run(script, *arguments):
    return scripts.run(f"examples/{script}.py", *arguments)


@pytest.fixture(scope="module")
def ranked(tmp_path_factory):
    """The folder of the data, of the model as a file and as an export, of labels and of a run; and the run."""
    folder = tmp_path_factory.mktemp("ranking")
    data.write_synthetic_letor(folder, num_queries=(20, 10, 15), num_features=16)
    model = models.FeedForwardScorer(hidden=[8], normalization="log1p")
    model.build([None, None, 16])
    model.save(folder / "best.keras")
    serving.export_ranker(model, folder / "export", num_features=16, warmup=False)
    scored = list(training.score_queries(model, data.read_letor(folder / "test.txt").batches(4, ids=True)))
    evaluation.write_qrels(folder / "qrels", scored)
    evaluation.write_run(folder / "first.run", scored)
    return folder, scored


def test_files_are_ranked_as_runs_tables_and_rows(ranked, tmp_path):
    folder, scored = ranked
    test = folder / "test.txt"
    run("rank_letor", folder / "export/1", test, f"--output={tmp_path}/run", "--tag=mine", "--batch_size=4")
    assert {line.split()[5] for line in (tmp_path / "run").read_text().splitlines()} == {"mine"}
    scores = {query.query_id: dict(zip(query.doc_ids, query.scores.tolist(), strict=True)) for query in scored}
    found = evaluation.read_run(tmp_path / "run")
    assert list(found) == list(scores) and found == {key: pytest.approx(scores[key], abs=1e-4) for key in scores}
    run("rank_letor", folder / "best.keras", test, "--to=csv", f"--output={tmp_path}/csv")
    table = pd.read_csv(tmp_path / "csv", dtype={"query_id": str})
    rows = table[table["query_id"] == scored[0].query_id]
    assert rows["rank"].tolist() == list(range(1, len(scored[0].scores) + 1))
    assert rows["score"].is_monotonic_decreasing


def test_runs_are_evaluated_and_compared(ranked, tmp_path):
    folder, scored = ranked
    first, qrels = folder / "first.run", f"--qrels={folder / 'qrels'}"
    lines = [f"{name}\tall\t{value:.4f}" for name, value in evaluation.trec_eval(scored).items()]
    assert run("evaluate_run", first, f"--letor={folder}/test.txt").stdout.splitlines() == lines
    printed = run("evaluate_run", first, qrels, "--measures=map,P_5", "--by_query").stdout.splitlines()
    query = scored[0].query_id
    value = evaluation.trec_eval_by_query(scored, ["map"])[query]["map"]
    assert len(printed) == 2 * len(scored) + 2 and printed[0] == f"map\t{query}\t{value:.4f}"
    better = [query._replace(scores=query.labels + 0.01 * query.scores) for query in scored]
    evaluation.write_run(tmp_path / "second.run", better)
    done = run("evaluate_run", tmp_path / "second.run", f"--against={first}", qrels, "--measures=ndcg")
    of_both = (evaluation.trec_eval_by_query(queries, "ndcg").items() for queries in (better, scored))
    values = [{query: each["ndcg"] for query, each in found} for found in of_both]
    means = [np.mean(list(each.values())) for each in values]
    p_value = evaluation.randomization_test(*values).p_value
    line = f"ndcg\tall\t{means[0]:.4f}\t{means[1]:.4f}\t{means[0] - means[1]:+.4f}\tp={p_value:.4f}\n"
    assert done.stdout == line and p_value < 0.05
