"""Reranks texts with encoders such as BERT trained with losses of this library, and compares the losses.

    python examples/text_reranking.py --docs=docs.tsv --queries=queries.tsv --qrels=qrels.txt \
        --model_dir=all-MiniLM-L6-v2 --losses="zero_shot softmax approx_ndcg smoothi_ndcg" --seeds=3
    python examples/text_reranking.py --train=train.tsv --valid=valid.tsv --test=test.tsv --model_dir=all-MiniLM-L6-v2

With a collection, it reranks BM25's candidates and cross-validates over the queries. With files of pairs, it reranks
the documents of each query in the file. Reports the first stage, each model, and each model mixed with the first stage.
When restarted, it runs only jobs without a result. docs/text.md describes files and models.
"""

from __future__ import annotations

import csv
import pathlib
from typing import Any

import startup

# isort: split
import pandas as pd
import tensorflow as tf
from absl import flags
from command_line import errors_in_one_line, json_flag

import experiments
from experiments import text_collections
from experiments.cross_validation import MEASURES, CrossValidation
from tfr_smooth import evaluation, losses, text, training

_DOCS = flags.DEFINE_string("docs", None, "TSV file of documents: doc_id, title, text, with a header.")
_QUERIES = flags.DEFINE_string("queries", None, "TSV file of queries: query_id, text, with a header.")
_QRELS = flags.DEFINE_string("qrels", None, "TREC qrels file with the judgments.")
_TRAIN = flags.DEFINE_string("train", None, "TSV or .jsonl file of pairs: query, document, label.")
_VALID = flags.DEFINE_string("valid", None, "File of pairs for validation.")
_TEST = flags.DEFINE_list(
    "test", [], "Files of pairs for testing; the names of the files are the names in the results."
)
_ANSWERED_ONLY = flags.DEFINE_bool("answered_only", False, "Whether to leave out queries without a relevant document.")
_GAINS = flags.DEFINE_string("gains", None, "Label of each grade, such as '1:4,2:3,3:2,4:1'. Default: the grade.")
_SOURCE_GRADE = flags.DEFINE_integer(
    "source_grade", None, "Grade of the document from which a query was written, which is neither judged nor ranked."
)
_NAME = flags.DEFINE_string(
    "name", None, "Name of the collection in the results. Default: name of the folder of --docs or --train."
)
_MODEL_DIR = flags.DEFINE_string(
    "model_dir", None, "Folder of the encoder: a preset of KerasHub or a download from Hugging Face.", required=True
)
_ARCHITECTURE = flags.DEFINE_enum(
    "architecture", "late", ["late", "single", "cross"], "Late interaction (ColBERT), single vectors or cross-encoder."
)
_LOSSES = flags.DEFINE_string(
    "losses",
    "zero_shot softmax approx_ndcg smoothi_ndcg",
    "Losses to compare, by name; zero_shot is the model before training.",
)
_LOSS_ARGS = json_flag("loss_args", 'Hyperparameters by loss as JSON, such as {"smoothi_ndcg": {"alpha": 10.0}}.')
_FOLDS = flags.DEFINE_integer("folds", 5, "Number of folds of the queries.", lower_bound=3)
_SEEDS = flags.DEFINE_integer("seeds", 1, "Number of seeds per loss and fold.", lower_bound=1)
_TOPN = flags.DEFINE_integer("topn", 100, "Documents per query that BM25 retrieves.", lower_bound=1)
_RELEVANT = flags.DEFINE_integer("relevant", 2, "Relevant documents per training list.", lower_bound=1)
_NEGATIVES = flags.DEFINE_integer("negatives", 2, "Non-relevant documents per training list.", lower_bound=1)
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 8, "Lists per optimizer step.", lower_bound=1)
_MICRO_BATCHES = flags.DEFINE_integer(
    "micro_batches", 1, "Parts of a batch for gradient accumulation, which saves memory.", lower_bound=1
)
_EPOCHS = flags.DEFINE_integer("epochs", 10, "Maximum number of epochs.", lower_bound=1)
_PATIENCE = flags.DEFINE_integer("patience", 3, "Epochs without improvement before training stops.", lower_bound=1)
_LEARNING_RATE = flags.DEFINE_float("learning_rate", 2e-5, "Adam's learning rate for the encoder.")
_HEAD_LEARNING_RATE = flags.DEFINE_float("head_learning_rate", 1e-3, "Adam's learning rate for the head.")
_FROZEN_LAYERS = flags.DEFINE_integer(
    "frozen_layers", 0, "Layers that are not trained; their output is computed once and cached.", lower_bound=0
)
_QUERY_LENGTH = flags.DEFINE_integer("query_length", 48, "Tokens of a query (not of a cross-encoder).", lower_bound=3)
_LENGTH = flags.DEFINE_integer("length", 180, "Tokens of a document, or of a cross-encoder's input.", lower_bound=5)
_PASSAGES = flags.DEFINE_integer("passages", 1, "Maximum passages per document (cross-encoder).", lower_bound=1)
_PRETRAINING = flags.DEFINE_integer(
    "pretraining_epochs", 0, "Epochs of pretraining with the documents' titles as queries.", lower_bound=0
)
_SELECT_BY = flags.DEFINE_enum("select_by", "ndcg_cut_10", MEASURES, "Validation measure for epoch and mix.")
_PRECISION = flags.DEFINE_enum(
    "precision", "float32", ["float32", "bfloat16", "float16"], "Other than float32: mixed precision, where supported."
)
_STRATEGY = flags.DEFINE_enum("strategy", "none", ["none", "mirrored", "multi_worker"], "Distribution strategy.")
_EXPORT = flags.DEFINE_string("export", None, "Also export the model of the first loss and fold 1 to this folder.")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/text", "Folder for all output.")
_VERBOSE = flags.DEFINE_bool("verbose", False, "Print one line per epoch.")

# Columns of pairs.
COLUMNS = ("query_id", "doc_id", "query", "text", "label")


def main(argv: list[str]) -> None:
    with errors_in_one_line(ImportError, OSError, ValueError):
        if len(argv) > 1:
            raise ValueError(f"Unknown argument {argv[1]!r}. Flags start with --.")
        if _PRECISION.value == "float16" and _STRATEGY.value != "none":
            # github.com/keras-team/keras/issues/19246
            raise ValueError("Keras 3 does not scale losses on several devices; use --precision=bfloat16.")
        strategy = training.get_strategy(_STRATEGY.value)
        if _PRECISION.value != "float32":
            tf.keras.mixed_precision.set_global_policy(f"mixed_{_PRECISION.value}")
        names = _LOSSES.value.split()
        if unused := sorted(set(_LOSS_ARGS.value) - set(names)):
            raise ValueError(f"--loss_args must be for losses of --losses, got {unused}.")
        compared = {name: loss_of(name) for name in names}
        made = ranker()
        source = read()
    describe(source["table"])
    output = pathlib.Path(_OUTPUT_DIR.value)
    plan = CrossValidation(
        _NAME.value or pathlib.Path(_DOCS.value or _TRAIN.value).resolve().parent.name,
        ranker=made,
        losses=compared,
        folder=output,
        **source,
        folds=_FOLDS.value,
        seeds=_SEEDS.value,
        init_model=pretrained(output, strategy) if _PRETRAINING.value else None,
        settings=settings(),
        strategy=strategy,
    )
    plan.compute(progress=progress)
    results = experiments.write_results(plan.results(), output)
    print(experiments.write_report(results, output, baseline=plan.first_stage))
    if _EXPORT.value:
        jobs = plan.jobs()
        job = next((job for job in jobs if job.loss is not None), jobs[0])
        print(f"Exported to {job.trained(output / 'export_training').export(_EXPORT.value)}")


def input_files() -> dict[str, Any]:
    """The given files by flag: those of a collection, or those of pairs."""
    found = {flag.name: flag.value for flag in (_DOCS, _QUERIES, _QRELS, _TRAIN, _VALID, _TEST) if flag.value}
    if found.keys() not in ({"docs", "queries", "qrels"}, {"train", "valid", "test"}):
        raise ValueError("Expected --docs, --queries and --qrels, or --train, --valid and --test.")
    return found


def read() -> dict[str, Any]:
    """Returns the table, the sources, the split and the name of the first stage, as arguments of `CrossValidation`."""
    if "docs" in input_files():
        files, grade = (_DOCS.value, _QUERIES.value, _QRELS.value), _SOURCE_GRADE.value
        table = text_collections.read_collection(*files, topn=_TOPN.value, gains=gains(), source_grade=grade)
        judged = evaluation.read_qrels(_QRELS.value)
        sources = {query: [name for name in docs if docs[name] == grade] for query, docs in judged.items()}
        return {"table": table, "sources": sources}
    if _PRETRAINING.value:
        raise ValueError("--pretraining_epochs needs documents with titles, which files of pairs do not have.")
    tests = {pathlib.Path(path).name.partition(".")[0]: path for path in _TEST.value}
    files = {**tests, "train": _TRAIN.value, "valid": _VALID.value}
    if len(files) < len(_TEST.value) + 2:
        raise ValueError(f"The names of the files in --test must differ, and not be train or valid, got {_TEST.value}.")
    parts = {part: read_pairs(part, path) for part, path in files.items()}
    first_stage = "first stage" if any("score" in part for part in parts.values()) else "bm25"
    table = pd.concat(
        [part if "score" in part else text_collections.add_scores(part) for part in parts.values()], ignore_index=True
    )
    split = {name: part["query_id"].unique().tolist() for name, part in parts.items()}
    return {"table": table, "split": split, "first_stage": first_stage}


def read_pairs(part: str, path: str) -> pd.DataFrame:
    """Returns pairs of a query and a document, each once with its highest label."""
    if ".jsonl" in pathlib.Path(path).name:
        table = pd.read_json(path, lines=True, dtype=False).rename(columns={"document": "text"})
    else:
        names = ["query", "text", "label"]
        table = pd.read_csv(path, sep="\t", names=names, quoting=csv.QUOTE_NONE, keep_default_na=False)
    if missing := {"query", "text", "label"} - set(table):
        raise ValueError(f"{path}:1: expected query, document and label, got no {sorted(missing)[0]}")
    table["label"] = pd.to_numeric(table["label"])
    for name, of in (("query_id", "query"), ("doc_id", "text")):
        given = table.get(name.replace("doc", "document"), table[of])
        table[name] = part + "/" + given.astype(str)
    table = table.groupby(["query_id", "doc_id"], sort=False, as_index=False).max()
    if _ANSWERED_ONLY.value:
        table = table[table.groupby("query_id")["label"].transform("max") > 0]
    return table[[*COLUMNS, *({"score"} & {*table})]]


def gains() -> dict[int, int] | None:
    if _GAINS.value is None:
        return None
    try:
        return {int(grade): int(gain) for grade, gain in (pair.split(":") for pair in _GAINS.value.split(","))}
    except ValueError:
        raise ValueError(f"--gains must be GRADE:LABEL pairs such as '1:4,2:3', got {_GAINS.value!r}.") from None


def loss_of(name: str) -> losses.RankingLoss | None:
    return None if name == "zero_shot" else losses.get(name, **_LOSS_ARGS.value.get(name, {}))


def describe(table: pd.DataFrame) -> None:
    """Prints the sizes of the table, and warnings."""
    by_query = table.groupby("query_id")
    judged = int((table["label"] > 0).sum())
    print(f"{table['doc_id'].nunique()} documents, {len(by_query)} queries, {judged} relevant pairs")
    for count, what in (
        ((by_query["label"].max() == 0).sum(), "queries without a relevant document: 0 in every measure"),
        ((by_query["score"].count() == 0).sum(), "queries without a candidate: 0 in every measure"),
    ):
        if count:
            print(f"{count} {what}")


def ranker(**changes: Any) -> text.TextRanker:
    """Returns the ranker of the flags."""
    flags_of = (
        *(_ARCHITECTURE, _FROZEN_LAYERS, _QUERY_LENGTH, _LENGTH, _PASSAGES, _RELEVANT, _NEGATIVES, _EPOCHS),
        *(_LEARNING_RATE, _PATIENCE, _HEAD_LEARNING_RATE, _BATCH_SIZE, _MICRO_BATCHES, _SELECT_BY, _VERBOSE),
    )
    arguments = {"encoder": _MODEL_DIR.value, **{each.name: each.value for each in flags_of}}
    return text.TextRanker(**{**arguments, **changes})


def settings() -> dict[str, Any]:
    """Returns further settings that identify the study."""
    folder = pathlib.Path(_MODEL_DIR.value)
    weights = sorted(str(path) for kind in ("safetensors", "weights.h5") for path in folder.glob(f"model*.{kind}"))
    return {"encoder": experiments.digest(weights), **{each.name: each.value for each in (_PRETRAINING, _PRECISION)}}


def pretrained(output: pathlib.Path, strategy: tf.distribute.Strategy) -> text.TextRanker:
    """Trains with the documents' titles as queries; the others are those that BM25 retrieves for a title."""
    documents = text_collections.read_texts(_DOCS.value)
    titles = documents["title"][(documents["title"] != "") & (documents["text"] != "")]
    own = pd.DataFrame({"query_id": titles.index, "doc_id": titles.index})
    best = text_collections.best_documents(titles, documents["text"], topn=10)
    table = pd.concat([own, best[["query_id", "doc_id"]]]).drop_duplicates().sort_values("query_id", kind="stable")
    table["query"], table["text"] = titles[table["query_id"]].tolist(), documents["text"][table["doc_id"]].tolist()
    table["label"] = (table["query_id"] == table["doc_id"]).astype(int)
    print(f"Pretraining on {len(titles)} titles")
    is_valid = table["query_id"].isin(titles.index[: max(1, len(titles) // 20)])
    return ranker(loss="list_net", epochs=_PRETRAINING.value, relevant=1, negatives=3, verbose=True).fit(
        table[~is_valid],
        query_id="query_id",
        validation=table[is_valid],
        strategy=strategy,
        checkpoint_dir=output / "pretraining",
    )


def progress(steps: Any, title: str, total: int | None = None) -> Any:
    import tqdm

    return tqdm.tqdm(steps, title, total, disable=None if _VERBOSE.value else False)


if __name__ == "__main__":
    startup.run(main, resume="The same command runs the jobs that have no result yet.")
