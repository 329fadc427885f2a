"""Reranks texts with encoders such as BERT trained with losses of this library, and compares the losses.

    python examples/text_reranking.py --docs=docs.tsv --queries=queries.tsv --qrels=qrels.txt \
        --model_dir=all-MiniLM-L6-v2 --losses="zero_shot softmax approx_ndcg smoothi_ndcg" --seeds=3
    python examples/text_reranking.py --train=train.tsv --valid=valid.tsv --test=test.tsv --model_dir=all-MiniLM-L6-v2

With a collection, it reranks BM25's candidates and cross-validates over the queries. With files of pairs, it reranks
the documents of each query in the file. Reports the first stage, each model, and each model mixed with the first stage.
When restarted, it runs only jobs without a result. docs/text.md describes files, models and results.
"""

from __future__ import annotations

import pathlib
from typing import Any

import startup

# isort: split
import tensorflow as tf
from absl import flags
from command_line import errors_in_one_line, json_flag

import experiments
from experiments.cross_validation import CrossValidation
from tfr_smooth import losses, text, training

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
_SHA256 = flags.DEFINE_string("sha256", None, "Expected SHA-256 hash of model.safetensors or model.weights.h5.")
_SCORER = flags.DEFINE_enum("scorer", "late", ["late", "cross"], "Late interaction (ColBERT) or cross-encoder.")
_LOSSES = flags.DEFINE_string(
    "losses",
    "zero_shot softmax approx_ndcg smoothi_ndcg",
    "Losses to compare, by name; zero_shot is the model before training.",
)
_LOSS_ARGS = json_flag("loss_args", 'Hyperparameters by loss as JSON, such as {"smoothi_ndcg": {"alpha": 10.0}}.')
_FOLDS = flags.DEFINE_integer("folds", 5, "Number of folds of the queries.", lower_bound=3)
_SEEDS = flags.DEFINE_integer("seeds", 1, "Number of seeds per loss and fold.", lower_bound=1)
_DEPTH = flags.DEFINE_integer("depth", 100, "Documents per query that BM25 retrieves.", lower_bound=1)
_RELEVANT = flags.DEFINE_integer("relevant", 2, "Relevant documents per training list.", lower_bound=1)
_OTHERS = flags.DEFINE_integer("others", 2, "Other documents per training list.", lower_bound=1)
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
_QUERY_LENGTH = flags.DEFINE_integer("query_length", 48, "Tokens of a query (late interaction).", lower_bound=3)
_LENGTH = flags.DEFINE_integer("length", 180, "Tokens of a document, or of a cross-encoder's input.", lower_bound=5)
_PASSAGES = flags.DEFINE_integer("passages", 1, "Maximum passages per document (cross-encoder).", lower_bound=1)
_PRETRAINING = flags.DEFINE_integer(
    "pretraining_epochs", 0, "Epochs of pretraining with the documents' titles as queries.", lower_bound=0
)
_SELECT_BY = flags.DEFINE_enum("select_by", "ndcg_cut_10", text.MEASURES, "Validation measure for epoch and mix.")
_PRECISION = flags.DEFINE_enum(
    "precision", "float32", ["float32", "bfloat16", "float16"], "Other than float32: mixed precision, where supported."
)
_STRATEGY = flags.DEFINE_enum("strategy", "none", ["none", "mirrored", "multi_worker"], "Distribution strategy.")
_EXPORT = flags.DEFINE_string("export", None, "Also export the model of the first loss and fold 1 to this folder.")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/text", "Folder for all output.")
_VERBOSE = flags.DEFINE_bool("verbose", False, "Print one line per epoch.")


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
        recipe()
        names = _LOSSES.value.split()
        if unused := sorted(set(_LOSS_ARGS.value) - set(names)):
            raise ValueError(f"--loss_args must be for losses of --losses, got {unused}.")
        compared = {name: loss_of(name) for name in names}
        encoder, tokenizer = load()
        check(encoder)
        source = read()
    collection, run = source["collection"], source["run"]
    describe(collection, run)
    output = pathlib.Path(_OUTPUT_DIR.value)
    start, settings = starting_point(collection, output, strategy)
    inputs = make_inputs(collection, tokenizer, candidates(collection, run))
    inputs.freeze(encoder, output / "cache", progress=progress)
    plan = CrossValidation(
        _NAME.value or pathlib.Path(_DOCS.value or _TRAIN.value).resolve().parent.name,
        inputs=inputs,
        make=start,
        losses=compared,
        folder=output,
        **source,
        folds=_FOLDS.value,
        seeds=_SEEDS.value,
        recipe=recipe(),
        settings=settings,
        strategy=strategy,
        verbose=_VERBOSE.value,
    )
    plan.compute(progress=progress)
    results = experiments.write_results(plan.results(), output)
    print(experiments.write_report(results, output, baseline=plan.first_stage))
    if _EXPORT.value:
        jobs = plan.jobs()
        job = next((job for job in jobs if job.loss is not None), jobs[0])
        model = job.model(output / "export_training")
        print(f"Exported to {text.export_reranker(model, _EXPORT.value, inputs=inputs)}")


def input_files() -> dict[str, Any]:
    """The given files by flag: those of a collection, or those of pairs."""
    found = {flag.name: flag.value for flag in (_DOCS, _QUERIES, _QRELS, _TRAIN, _VALID, _TEST) if flag.value}
    if found.keys() not in ({"docs", "queries", "qrels"}, {"train", "valid", "test"}):
        raise ValueError("Expected --docs, --queries and --qrels, or --train, --valid and --test.")
    return found


def read() -> dict[str, Any]:
    """Returns the collection, the run of the first stage, and the split, as arguments of `CrossValidation`."""
    if "docs" in input_files():
        collection = text.read_collection(
            _DOCS.value, _QUERIES.value, _QRELS.value, gains=gains(), source_grade=_SOURCE_GRADE.value
        )
        return {"collection": collection, "run": text.bm25(collection, depth=_DEPTH.value)}
    if _PRETRAINING.value:
        raise ValueError("--pretraining_epochs needs documents with titles, which files of pairs do not have.")
    tests = {pathlib.Path(path).name.partition(".")[0]: path for path in _TEST.value}
    files = {**tests, "train": _TRAIN.value, "valid": _VALID.value}
    if len(files) < len(_TEST.value) + 2:
        raise ValueError(f"The names of the files in --test must differ, and not be train or valid, got {_TEST.value}.")
    pairs = text.read_pairs(files, answered_only=_ANSWERED_ONLY.value)
    run = {**text.bm25(pairs.collection, candidates=pairs.candidates), **pairs.scores}
    first_stage = "first stage" if pairs.scores else "bm25"
    return {"collection": pairs.collection, "run": run, "split": pairs.parts, "first_stage": first_stage}


def gains() -> dict[int, int] | None:
    if _GAINS.value is None:
        return None
    try:
        return {int(grade): int(gain) for grade, gain in (pair.split(":") for pair in _GAINS.value.split(","))}
    except ValueError:
        raise ValueError(f"--gains must be GRADE:LABEL pairs such as '1:4,2:3', got {_GAINS.value!r}.") from None


def loss_of(name: str) -> losses.RankingLoss | None:
    return None if name == "zero_shot" else losses.get(name, **_LOSS_ARGS.value.get(name, {}))


def check(encoder: text.Encoder) -> None:
    """Checks flags before the slow steps."""
    for flag in (_LENGTH, _QUERY_LENGTH):
        if encoder.max_length is not None and flag.value > encoder.max_length:
            raise ValueError(f"--{flag.name} must be at most the model's {encoder.max_length}, got {flag.value}.")


def describe(collection: text.Collection, run: dict[str, dict[str, float]]) -> None:
    """Prints the sizes of the collection, and warnings."""
    judged = sum(map(len, collection.labels.values()))
    print(f"{len(collection.documents)} documents, {len(collection.queries)} queries, {judged} judgments")
    zero = "0 in every measure"
    for count, what in (
        (
            sum(not document.content for document in collection.documents.values()),
            "documents without text: never retrieved",
        ),
        (
            sum(not any(labels.values()) for labels in collection.labels.values()),
            f"queries without a relevant document: {zero}",
        ),
        (sum(not documents for documents in run.values()), f"queries without a candidate: {zero}"),
    ):
        if count:
            print(f"{count} {what}")


def load() -> tuple[text.Encoder, Any]:
    return text.load_encoder(_MODEL_DIR.value, frozen_layers=_FROZEN_LAYERS.value, sha256=_SHA256.value)


def make_model(encoder: text.Encoder) -> text.Reranker:
    model = {"late": text.LateInteraction, "cross": text.CrossEncoder}[_SCORER.value]
    rate = _HEAD_LEARNING_RATE.value / _LEARNING_RATE.value
    return model(encoder, micro_batches=_MICRO_BATCHES.value, head_rate=rate)


def make_inputs(collection: text.Collection, tokenizer: Any, pairs: dict[str, list[str]]) -> text.Inputs:
    wanted = {doc_id for doc_ids in pairs.values() for doc_id in doc_ids}
    documents = {doc_id: document for doc_id, document in collection.documents.items() if doc_id in wanted}
    collection = collection._replace(documents=documents)
    if _SCORER.value == "late":
        lengths = {"query_length": _QUERY_LENGTH.value, "document_length": _LENGTH.value}
        return text.LateInputs(collection, tokenizer, **lengths)
    return text.PairInputs(collection, tokenizer, pairs, length=_LENGTH.value, passages=_PASSAGES.value)


def candidates(collection: text.Collection, run: dict[str, dict[str, float]]) -> dict[str, list[str]]:
    """The documents that training and ranking use, by query."""
    return {query_id: list(dict.fromkeys([*run[query_id], *collection.labels[query_id]])) for query_id in run}


def recipe(**changes: Any) -> text.RerankerRecipe:
    values = {
        "epochs": _EPOCHS.value,
        "patience": _PATIENCE.value,
        "batch_size": _BATCH_SIZE.value,
        "learning_rate": _LEARNING_RATE.value,
        "relevant": _RELEVANT.value,
        "others": _OTHERS.value,
        "select_by": _SELECT_BY.value,
    }
    return text.RerankerRecipe(**{**values, **changes})


def starting_point(
    collection: text.Collection, output: pathlib.Path, strategy: tf.distribute.Strategy
) -> tuple[Any, dict[str, Any]]:
    """Returns a function that creates the initial model, and the settings that identify it."""
    names = (_MODEL_DIR, _SCORER, _FROZEN_LAYERS, _LENGTH, _QUERY_LENGTH, _PASSAGES, _HEAD_LEARNING_RATE)
    settings = {flag.name: flag.value for flag in (*names, _DEPTH, _PRETRAINING, _PRECISION, _MICRO_BATCHES)}
    if _TRAIN.value:
        settings["answered_only"] = _ANSWERED_ONLY.value
    folder = pathlib.Path(_MODEL_DIR.value)
    weights = sorted(str(path) for kind in ("safetensors", "weights.h5") for path in folder.glob(f"model*.{kind}"))
    settings["model_dir"] = experiments.digest(weights)
    settings["gains"], settings["source_grade"] = _GAINS.value, _SOURCE_GRADE.value
    if not _PRETRAINING.value:
        return lambda: make_model(load()[0]), settings
    titles = text.title_queries(collection)
    run = text.bm25(titles, depth=10)
    print(f"Pretraining on {len(titles.queries)} titles")
    queries = list(titles.queries)
    held_out = max(1, len(queries) // 20)
    model = text.train(
        lambda: make_model(load()[0]),
        losses.ListNetLoss(),
        make_inputs(titles, load()[1], candidates(titles, run)),
        run,
        titles.labels,
        {"train": queries[held_out:], "valid": queries[:held_out]},
        output / "pretraining",
        recipe=recipe(epochs=_PRETRAINING.value, relevant=1, others=3),
        settings=settings,
        strategy=strategy,
    )
    weights = model.get_weights()

    def make() -> text.Reranker:
        started = make_model(load()[0])
        started.set_weights(weights)
        return started

    return make, settings


def progress(steps: Any, title: str, total: int | None = None) -> Any:
    import tqdm

    return tqdm.tqdm(steps, title, total, disable=None if _VERBOSE.value else False)


if __name__ == "__main__":
    startup.run(main, resume="The same command runs the jobs that have no result yet.")
