"""Checks and times the library on a GPU, beside two CPU cores of the same machine.

    python benchmarks/gpu.py --results=gpu --authors=SmoothI/src

needs TensorFlow and this checkout, and writes --results/PART_DEVICE.json after each measurement. With a GPU, it takes
several minutes; without one, the same parts run smaller on the CPU. The part cuda_graphs is model_xla with CUDA graphs,
also of loops. Each part is a process of its own, so that an error or a limit ends only this part. With the folder src/
of https://github.com/ygcinar/SmoothI and PyTorch, the authors' code is timed as well. The last part lists the checks
that failed, and then the exit status is 1.

Times are those of the wall clock per step, from many steps in a row, as in training: the GPU computes one step while
Python prepares the next.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from absl import app, flags

_RESULTS = flags.DEFINE_string("results", "gpu_results", "Folder of the results.")
_PARTS = flags.DEFINE_list("parts", None, "The parts to run. Default: all.")
_AUTHORS = flags.DEFINE_string("authors", None, "The src/ folder of the SmoothI authors' code. Default: skip it.")
_SMALL = flags.DEFINE_boolean("small", None, "Small sizes. Default: without a GPU.")
_LIMIT = flags.DEFINE_integer("limit", 120, "Seconds after which a part ends.", lower_bound=1)
_ALONE = flags.DEFINE_string("process", None, "Only PART,DEVICE, in this process; for internal use.")

Row = dict[str, Any]
SHAPES = [(128, 120), (32, 500), (8, 1000), (256, 1000)]
LOSSES: dict[str, dict[str, Any]] = {
    "smoothi_ndcg": {"alpha": 1.0, "delta": 0.1},
    "smoothi_ndcg@10": {"alpha": 1.0, "delta": 0.1, "topn": 10},
    "soft_ndcg": {"sigma": 1.0},
    "approx_ndcg": {},
    "lambda_loss": {"metric": "lambda_rank"},
    "softmax": {},
    "lapsum_ndcg": {},
    "sortingnetwork_ndcg": {},
    "pl_rank_ndcg": {},
    "bsl": {},
    "neuralsort_ndcg": {"sinkhorn_steps": 50},
}
# The largest differences of gradients, which have the precision of the scores.
MODES = {"graph": 1e-4, "XLA": 1e-4, "float16": 2e-3, "bfloat16": 1e-2}
# The others, of values and scores. Matrix products of GPUs have TensorFloat-32's 10 bits.
DIFFERENCES = {"value": 1e-5, "weights": 1e-5, "difference": 2e-3}
COMPILED = ("smoothi_ndcg", "soft_ndcg", "approx_ndcg", "lambda_loss", "softmax", "neuralsort_ndcg", "list_mle")
COMPILED += ("lapsum_ndcg", "sortingnetwork_ndcg", "bsl")
CHECKED_SMALL = ("bsl", "lapsum_ndcg", "pairwise_qr", "pl_rank_ndcg", "poly1_softmax", "smoothi_ndcg", "xe_ndcg")
CUDA_GRAPHS = "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUDNN,WHILE,CONDITIONAL"


def small() -> bool:
    return bool(_SMALL.value)


def on_gpu() -> bool:
    return _ALONE.value.endswith("gpu")


def seconds_of(step: Callable[[], Any], finish: Callable[[Any], Any], budget: float = 1.0) -> float:
    """Returns the seconds of a step, among many in a row."""
    for _ in range(3):
        finish(step())
    start = time.perf_counter()
    finish(step())
    count = max(3, int(min(budget, 0.05 if small() else budget) / (time.perf_counter() - start)))
    start = time.perf_counter()
    for _ in range(count):
        result = step()
    finish(result)
    return (time.perf_counter() - start) / count


def fetch(results: Any) -> Any:
    import tensorflow as tf

    return tf.nest.map_structure(lambda tensor: tensor.numpy(), results)


def peak_mebibytes(run: Callable[[], Any]) -> float | None:
    """Returns the peak memory of the GPU in a call; None on a CPU."""
    import tensorflow as tf

    if not on_gpu():
        run()
        return None
    tf.config.experimental.reset_memory_stats("GPU:0")
    run()
    return tf.config.experimental.get_memory_info("GPU:0")["peak"] / 2**20


def checked(part: int, parts: int) -> tuple[str, ...]:
    """Returns the names of the losses that a part checks."""
    from tfr_smooth import losses

    return (CHECKED_SMALL if small() else losses.NAMES)[part::parts]


def loss_of(name: str) -> Any:
    from tfr_smooth import losses

    return losses.get(name.partition("@")[0], **LOSSES[name])


def losses_part() -> Iterator[Row]:
    """Value and gradient of losses."""
    import harness
    import smoothi
    import tensorflow as tf

    plain, squared = smoothi.plain_tensorflow("ndcg"), tf.keras.losses.MeanSquaredError()
    functions: dict[str, Callable[..., Any]] = {
        "keras mean_squared_error": lambda labels, scores: squared(labels, scores)
    }
    functions |= {name: loss_of(name) for name in LOSSES} | {"plain TensorFlow smoothi_ndcg": plain}
    for lists, documents in SHAPES[:1] if small() else SHAPES:
        batch = harness.a_batch(*(8, 20) if small() else (lists, documents))
        for name, function in functions.items():
            slow = not on_gpu() or name == "neuralsort_ndcg"
            if (lists, documents) == (256, 1000) and slow and name != "smoothi_ndcg":
                continue
            side = harness.TensorFlowSide(function, *batch)
            found: Row = {}

            def run(side: Any = side, found: Row = found) -> None:
                found["seconds"] = seconds_of(lambda: side._step(*side._inputs), fetch, 0.3)

            peak = peak_mebibytes(run)
            yield {"loss": name, "shape": f"{lists}x{documents}", "ms": 1e3 * found["seconds"], "peak_MiB": peak}


def authors_part() -> Iterator[Row]:
    """The SmoothI authors' code."""
    import harness
    import peer_losses
    import torch

    device = "cuda" if on_gpu() else "cpu"
    for lists, documents in SHAPES[:1] if small() else SHAPES[: 4 if on_gpu() else 3]:
        labels, scores = (torch.from_numpy(array).to(device) for array in harness.a_batch(lists, documents))
        loss = peer_losses.smoothi_ndcg(_AUTHORS.value, alpha=1.0, delta=0.1, documents=documents, device=device)

        def step(labels: Any = labels, scores: Any = scores, loss: Any = loss) -> Any:
            leaf = scores.detach().requires_grad_()
            loss(labels, leaf).backward()
            return leaf.grad

        seconds = seconds_of(step, lambda gradient: gradient.cpu(), 0.5)
        yield {"loss": "authors' smoothi_ndcg", "shape": f"{lists}x{documents}", "ms": 1e3 * seconds}


def model_part(compiled: bool) -> Iterator[Row]:
    """Training steps of three layers of 1,024 units, and how much of a step is the loss.

    Keras 3 compiles the steps of plain Keras models by XLA, unless told otherwise.
    """
    import harness
    import tensorflow as tf

    lists, documents, width = (8, 20, 16) if small() else (128, 120, 1024)
    labels, _ = harness.a_batch(lists, documents)
    features = tf.random.stateless_normal([lists, documents, 136], [0, 1])
    squared = tf.keras.losses.MeanSquaredError()
    functions: dict[str, Callable[..., Any]] = {"none": lambda _, scores: tf.reduce_mean(scores)}
    functions |= {"keras mean_squared_error": lambda labels, scores: squared(labels, scores)}
    functions |= {name: loss_of(name) for name in [*LOSSES][:: 6 if small() else 1]}
    without = 0.0
    for name, function in functions.items():
        layers = [tf.keras.layers.Dense(width, activation="relu") for _ in range(3)]
        model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(1), tf.keras.layers.Reshape([documents])])
        model.build([None, documents, 136])
        optimizer = tf.keras.optimizers.Adam(1e-3)
        optimizer.build(model.trainable_variables)

        @tf.function(jit_compile=compiled)
        def step(features: Any, labels: Any, model: Any = model, function: Any = function, own: Any = optimizer) -> Any:
            with tf.GradientTape() as tape:
                value = function(labels, model(features, training=True))
            weights = model.trainable_variables
            own.apply_gradients(zip(tape.gradient(value, weights), weights, strict=True))
            return value

        arguments = features, tf.constant(labels)
        seconds = seconds_of(lambda: step(*arguments), fetch)  # noqa: B023
        without = without or seconds
        yield {"loss": name, "XLA": compiled, "ms": 1e3 * seconds, "share_of_loss": 1.0 - without / seconds}


def input_part() -> Iterator[Row]:
    """Steps of `fit` from lists in memory, beside the same steps on one batch."""
    import tensorflow as tf

    from tfr_smooth import data, models

    queries, documents, width = (16, 5, 8) if small() else (1024, 120, 1024)
    random = np.random.default_rng(0)
    count = queries * documents
    features = random.normal(size=[count, 136]).astype(np.float32)
    lists = data.from_arrays(features, random.integers(0, 5, count), qid=np.repeat(np.arange(queries), documents))
    model = models.FeedForwardScorer(hidden=[width] * 3, batch_norm=False)
    model.compile("adam", "smoothi_ndcg")
    batch_size = 8 if small() else 128
    batches = lists.batches(batch_size, shuffle=True, num_epochs=None)
    steps = 3 if small() else 50
    one = next(iter(batches))
    for name, dataset in (("batches", batches), ("one batch", tf.data.Dataset.from_tensors(one).repeat())):
        model.fit(dataset, steps_per_epoch=steps, epochs=1, verbose=0)
        start = time.perf_counter()
        model.fit(dataset, steps_per_epoch=steps, epochs=1, verbose=0)
        yield {"input": name, "ms": 1e3 * (time.perf_counter() - start) / steps}


def catalog_part() -> Iterator[Row]:
    """Steps of matrix factorization with the whole catalog."""
    import catalog

    flags.FLAGS.runs, flags.FLAGS.warm_runs = (1, 1) if small() else (5, 2)
    for items in (100,) if small() else (41_000, 1_000_000) if on_gpu() else (41_000,):
        for method in ("softmax", "SmoothI-NDCG@20", "SmoothI-NDCG@20 of candidates"):
            yield {"items": items, "method": method, "ms": 1e3 * catalog.measure(method, items)["wall_seconds"]}


def ranker_part() -> Iterator[Row]:
    """`Ranker` on a table of the shape of WEB10K."""
    from tables import made_up

    import tfr_smooth

    table = made_up.web10k(np.random.default_rng(0))
    frame = (table.sample(20) if small() else table).part("train", "valid").drop(columns="part")
    ranker = tfr_smooth.Ranker(epochs=1 if small() else 5, verbose=False)
    start = time.perf_counter()
    ranker.fit(frame, label="label", query="query")
    fitted = time.perf_counter() - start
    ranker.predict(frame)
    start = time.perf_counter()
    ranker.predict(frame)
    rate = len(frame) / (time.perf_counter() - start)
    ndcg = ranker.evaluate(frame)["ndcg"].mean if _has("pytrec_eval") else None
    yield {"fit_seconds": fitted, "rows_per_second": rate, "ndcg": ndcg, "epochs": ranker._plan.epochs}


def _has(name: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(name) is not None


def text_part() -> Iterator[Row]:
    """`TextRanker` with random weights of the shape of MiniLM (6 layers of 384)."""
    import keras_hub
    import pandas as pd

    from tfr_smooth import text

    random = np.random.default_rng(0)
    words = [a + b + c for a in "bdfglmnprst" for b in "aeiou" for c in "bdfglmnprst"]
    tokenizer = keras_hub.models.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}
    if not small():
        sizes = {"num_layers": 6, "num_heads": 12, "hidden_dim": 384, "intermediate_dim": 1536}
    backbone = keras_hub.models.BertBackbone(vocabulary_size=len(words) + 5, max_sequence_length=256, **sizes)
    queries, depth = (4, 4) if small() else (128 if on_gpu() else 8, 16)
    rows = [
        (" ".join(random.choice(words, 6)), " ".join(random.choice(words, 60)), int(place == 0), query)
        for query in range(queries)
        for place in range(depth)
    ]
    table = pd.DataFrame(rows, columns=["query", "text", "label", "number"])
    table["query"] = table.groupby("number")["query"].transform("first")
    with tempfile.TemporaryDirectory() as folder:
        backbone.save_to_preset(folder)
        tokenizer.save_to_preset(folder)
        for epochs in (1, 3):  # the first call compiles
            ranker = text.TextRanker(encoder=folder, length=128, epochs=epochs, verbose=False)
            start = time.perf_counter()
            ranker.fit(table.drop(columns="number"))
            fitted = time.perf_counter() - start
        ranker.predict(table[["query", "text"]])
        start = time.perf_counter()
        ranker.predict(table[["query", "text"]])
        yield {
            "fit_seconds_of_3_epochs": fitted,
            "rows": len(table),
            "pairs_scored_per_second": len(table) / (time.perf_counter() - start),
        }


def right_part(part: int = 0, parts: int = 1) -> Iterator[Row]:
    """Value and gradient of every loss against float64 on the CPU; relative to the value and the largest gradient."""
    import tensorflow as tf

    from tfr_smooth import losses, metrics

    random = np.random.RandomState(0)
    labels = random.randint(0, 4, [6, 12]).astype(np.float32)
    labels[:, 0], labels[0, -3:] = 2.0, -1.0
    scores = (random.randn(6, 12) * 8.0).round().astype(np.float32) / 8.0  # with ties, and exact in every precision
    for name in checked(part, parts):
        is_random = "seed" in losses.hyperparameters(name)

        def step(labels: Any, scores: Any, name: str = name, given: Any = {"seed": 1} if is_random else {}) -> Any:
            tf.random.set_seed(0)  # the same noise each time
            loss = losses.get(name, **given)
            with tf.GradientTape() as tape:
                tape.watch(scores)
                value = loss(labels, scores)
            return value, tape.gradient(value, scores)

        for mode in MODES:
            if mode == "XLA" and name not in COMPILED:
                continue
            given = tf.cast(scores, {"float16": tf.float16, "bfloat16": tf.bfloat16}.get(mode, tf.float32))
            with tf.device("CPU:0"):
                precise = given if is_random else tf.cast(given, tf.float64)
                expected = fetch(step(tf.constant(labels, precise.dtype), tf.identity(precise)))
            run = step if mode.startswith(("float", "bfloat")) else tf.function(step, jit_compile=mode == "XLA")
            try:
                value, gradient = fetch(run(tf.constant(labels), given))
            except Exception as error:
                yield {"loss": name, "mode": mode, "error": f"{type(error).__name__}: {str(error)[:300]}"}
                continue
            gradient, wanted = np.asarray(gradient, np.float64), np.asarray(expected[1], np.float64)
            yield {
                "loss": name,
                "mode": mode,
                "value": float(abs(float(value) - float(expected[0])) / max(abs(float(expected[0])), 1e-3)),
                "gradient": float(np.abs(gradient - wanted).max() / max(np.abs(wanted).max(), 1e-3)),
            }
    for name in metrics.NAMES[part::parts][: 3 if small() else None]:
        values = []
        for device in ("CPU:0", "GPU:0" if on_gpu() else "CPU:0"):
            with tf.device(device):
                metric = metrics.get(name)
                metric.update_state(tf.constant(labels), tf.constant(scores))
                values.append(float(metric.result()))
        yield {"metric": name, "value": abs(values[0] - values[1])}


def steps_part(part: int = 0, parts: int = 1) -> Iterator[Row]:
    """The weights after a step that XLA compiles as a whole, with every loss, relative to the step without XLA."""
    import tensorflow as tf

    from tfr_smooth import losses

    random = np.random.RandomState(0)
    labels, features = random.randint(0, 4, [6, 12]), random.randn(6, 12, 5)
    labels[:, 0], labels[:, 1] = 2, 0
    for name in checked(part, parts):
        changes = []
        for compiled in (False, True):
            tf.keras.utils.set_random_seed(0)
            layers = [tf.keras.layers.Dense(8, "tanh"), tf.keras.layers.Dense(1), tf.keras.layers.Reshape([12])]
            model = tf.keras.Sequential([tf.keras.Input([12, 5]), *layers])
            model.compile(tf.keras.optimizers.SGD(1e-3), losses.get(name), jit_compile=compiled)
            before = model.get_weights()
            try:
                model.train_on_batch(tf.constant(features, tf.float32), tf.constant(labels, tf.float32))
            except Exception as error:
                yield {"loss": name, "XLA": compiled, "error": f"{type(error).__name__}: {str(error)[:300]}"}
                break
            after = model.get_weights()
            changes.append(np.concatenate([(new - old).ravel() for new, old in zip(after, before, strict=True)]))
        else:
            # XLA draws other random numbers.
            measure = "change" if "seed" in losses.hyperparameters(name) else "difference"
            difference = np.abs(changes[1] - changes[0]).max() / max(np.abs(changes[0]).max(), 1e-9)
            yield {"loss": name, measure: float(difference)}


def recommend_part() -> Iterator[Row]:
    """Recommendations from a catalog, by `Recommender` and by its export, and that both are the same."""
    import scipy.sparse
    import tensorflow as tf

    from tfr_smooth import recommendation

    users, items, topn = (32, 100, 5) if small() else (1024, 41_000, 100)
    seen = scipy.sparse.random(users, items, density=10.0 / items, format="csr", random_state=0)
    recommender = recommendation.Recommender(dim=16 if small() else 64, softmax_epochs=1, epochs=1, verbose=False)
    recommender.fit(recommendation.Interactions(seen > 0))
    everyone = np.arange(users)
    with tempfile.TemporaryDirectory() as folder:
        loaded = tf.saved_model.load(str(recommender.export(folder, topn=topn)))
    served, ids = loaded.signatures["users"], tf.constant(everyone)
    methods: dict[str, Callable[[], Any]] = {
        "recommend": lambda: recommender.recommend(everyone, topn=topn).scores,
        "export": lambda: served(users=ids)["scores"].numpy(),
    }
    for name, method in methods.items():
        yield {"method": name, "items": items, "ms": 1e3 * seconds_of(method, lambda scores: scores)}
    own, other = (method() for method in methods.values())
    yield {"export": "recommender", "difference": float(np.abs(own - other).max() / np.abs(own).max())}


def replicas_part() -> Iterator[Row]:
    """Two replicas on one device, which is divided into two logical ones, against a single one."""
    import tensorflow as tf

    from tfr_smooth import data, models

    kind = "GPU" if on_gpu() else "CPU"
    options = [tf.config.LogicalDeviceConfiguration(memory_limit=2048 if on_gpu() else None)] * 2
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices(kind)[0], options)
    random = np.random.default_rng(0)
    features = random.normal(size=[160, 5]).astype(np.float32)
    lists = data.from_arrays(features, random.integers(0, 3, 160), qid=np.repeat(np.arange(32), 5))
    weights = []
    for count in (1, 2):
        devices = [f"{kind}:{place}" for place in range(count)]
        strategy = tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())
        with strategy.scope():
            model = models.FeedForwardScorer(hidden=[8], batch_norm=False, seed=0)
            model.compile(tf.keras.optimizers.SGD(0.1), "smoothi_ndcg")
        model.fit(lists.batches(8), epochs=2, verbose=0)
        weights.append([np.asarray(array) for array in model.get_weights()])
    yield {"weights": float(max(np.abs(a - b).max() for a, b in zip(*weights, strict=True)))}


def estimators_part() -> Iterator[Row]:
    """Trains each estimator for an epoch; a second process compares its scores on the CPU."""
    import pandas as pd
    import tensorflow as tf

    import tfr_smooth
    from tfr_smooth import recommendation

    folder = pathlib.Path(_RESULTS.value) / f"models_{_ALONE.value.partition(',')[2]}"
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"query": np.repeat(np.arange(64), 8), "price": random.normal(size=512)})
    frame["color"] = random.choice(["red", "blue"], 512)
    frame["seller"] = random.choice([f"seller {number}" for number in range(150)], 512)
    frame["title"] = [" ".join(random.choice(["red", "lamp", "chair", "oak", "desk"], 4)) for _ in range(512)]
    frame["label"] = (frame["price"] + (frame["color"] == "red") > 0.5).astype(int)
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_pickle(folder / "frame.pkl")
    kinds = {"seller": "id", "title": "text"}
    ranker = tfr_smooth.Ranker(epochs=1, kinds=kinds, verbose=False).fit(frame, label="label", query="query")
    recommender = recommendation.Recommender(dim=16, softmax_epochs=1, epochs=1, verbose=False)
    recommender.fit(recommendation.Interactions(random.random([200, 100]) < 0.1))
    ranker.save(folder / "ranker.keras")
    recommender.save(folder / "recommender.keras")
    np.savez(folder / "scores.npz", ranker=ranker.predict(frame), recommender=recommender.predict(np.arange(200)))
    exported = tf.saved_model.load(str(ranker.export(folder / "export", warmup=False))).signatures["serving_default"]
    inputs = {name: frame[name].to_numpy().reshape(64, 8) for name in ("price", "color", "seller", "title")}
    inputs["price"] = inputs["price"].astype(np.float32)
    own = ranker.predict(frame)
    served = fetch(exported(**{name: tf.constant(values) for name, values in inputs.items()}))
    scores = next(iter(served.values())).ravel()
    yield {"export": "ranker", "difference": float(np.abs(scores - own).max() / np.abs(own).max())}


def agree_part() -> Iterator[Row]:
    """Scores on the CPU of the models that `estimators` trained on the GPU."""
    import pandas as pd

    import tfr_smooth
    from tfr_smooth import recommendation

    folder = pathlib.Path(_RESULTS.value) / "models_gpu"
    if not folder.exists():
        folder = folder.with_name("models_cpu")
    with np.load(folder / "scores.npz") as scores:
        own = {
            "ranker": tfr_smooth.Ranker.load(folder / "ranker.keras").predict(pd.read_pickle(folder / "frame.pkl")),
            "recommender": recommendation.Recommender.load(folder / "recommender.keras").predict(np.arange(200)),
        }
        for name, values in own.items():
            yield {"model": name, "difference": float(np.abs(values - scores[name]).max() / np.abs(values).max())}


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "losses": losses_part,
    "authors": authors_part,
    "model": lambda: model_part(compiled=False),
    "model_xla": lambda: model_part(compiled=True),
    "cuda_graphs": lambda: model_part(compiled=True),  # with another environment
    "input": input_part,
    "catalog": catalog_part,
    "recommend": recommend_part,
    "ranker": ranker_part,
    "text": text_part,
    "replicas": replicas_part,
    "estimators": estimators_part,
    **{f"right{part}": lambda part=part: right_part(part, 3) for part in range(3)},  # type: ignore[misc]
    **{f"steps{part}": lambda part=part: steps_part(part, 3) for part in range(3)},  # type: ignore[misc]
    "agree": agree_part,
}
# One after another.
TIMED = ("losses", "authors", "model", "model_xla", "cuda_graphs", "input", "catalog", "recommend", "ranker", "text")


def alone(part: str, device: str) -> None:
    """Runs a part in this process, and writes its rows as they come."""
    path = pathlib.Path(_RESULTS.value) / f"{part}_{device}.json"
    rows = []
    for row in PARTS[part]():
        rows.append(row)
        print(f"{part} {device}: {json.dumps(row)}", flush=True)
        path.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def run(part: str, device: str) -> None:
    """Runs a part in a process: on the GPU, or on two cores."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
    root = str(pathlib.Path(__file__).resolve().parents[1])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH", "")]))
    if part == "cuda_graphs":
        environment["XLA_FLAGS"] = " ".join([environment.get("XLA_FLAGS", ""), CUDA_GRAPHS])
    command = [sys.executable, __file__, f"--process={part},{device}", f"--results={_RESULTS.value}"]
    command += [f"--small={_SMALL.value}"] + ([f"--authors={_AUTHORS.value}"] if _AUTHORS.value else [])
    if part == "authors":  # PyTorch brings its own CUDA libraries.
        environment = {
            name: value for name, value in environment.items() if name not in ("LD_LIBRARY_PATH", "XLA_FLAGS")
        }
        environment["PYTHONPATH"] = root
    if device == "cpu":
        environment["CUDA_VISIBLE_DEVICES"] = "-1"
        if (cores := os.cpu_count() or 1) > 4:
            command = ["taskset", "-c", f"{cores - 2},{cores - 1}", *command]
    try:
        code = subprocess.run(command, env=environment, timeout=_LIMIT.value, check=False).returncode
        error = f"ended with status {code}" if code else ""
    except subprocess.TimeoutExpired:
        error = f"ended after {_LIMIT.value} s"
    if error:
        print(f"{part} {device} {error}.", flush=True)
        path = pathlib.Path(_RESULTS.value) / f"{part}_{device}.json"
        rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        path.write_text(json.dumps([*rows, {"error": error}], indent=1), encoding="utf-8")


def main(argv: list[str]) -> None:
    del argv
    if _ALONE.value:
        alone(*_ALONE.value.split(","))
        return
    pathlib.Path(_RESULTS.value).mkdir(parents=True, exist_ok=True)
    listing = "import tensorflow as tf; print(len(tf.config.list_physical_devices('GPU')))"
    done = subprocess.run([sys.executable, "-c", listing], stdout=subprocess.PIPE, text=True, check=True)
    has_gpu = done.stdout.split()[-1] != "0"
    if _SMALL.value is None:
        flags.FLAGS.small = not has_gpu
    device = "gpu" if has_gpu else "cpu"
    parts = [part for part in _PARTS.value or PARTS if part != "authors" or _AUTHORS.value]
    timed = [part for part in parts if part in TIMED]
    # Beside the GPU, the same on two cores, a part at a time.
    cores = threading.Thread(target=lambda: [run(part, "cpu") for part in timed if has_gpu])
    cores.start()
    for part in timed:
        run(part, device)
    checks = [threading.Thread(target=run, args=(part, device)) for part in parts if part not in (*timed, "agree")]
    for check in checks:
        check.start()
    for check in checks:
        check.join()
    if "agree" in parts:
        run("agree", "cpu")
    cores.join()
    failed = list(failures())
    print("\n".join(failed) or "All checks passed.")
    sys.exit(bool(failed))


def failures() -> Iterator[str]:
    """Yields the measurements that differ more than they may."""
    for path in sorted(pathlib.Path(_RESULTS.value).glob("*.json")):
        for row in json.loads(path.read_text(encoding="utf-8")):
            limits = {**DIFFERENCES, "gradient": MODES.get(row.get("mode"), 0.0)}
            if "error" in row or any(not row[name] <= limit for name, limit in limits.items() if name in row):
                yield f"{path.stem}: {row}"


if __name__ == "__main__":
    app.run(main)
