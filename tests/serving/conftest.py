"""Models and exports shared by all tests of this folder, request protos, and TF Serving's loader as a program."""

import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow_serving.apis.input_pb2 import ExampleListWithContext

import tfr_smooth
from tests.ranker.test_ranker import FRAME, SMALL
from tests.recommendation.groups import likes
from tfr_smooth import losses, models, recommendation, serving


def example(**values):
    """A tf.Example of these numbers or bytes."""
    built = tf.train.Example()
    for name, value in values.items():
        feature = built.features.feature[name]
        if isinstance(value[0] if len(value) else 0.0, bytes):
            feature.bytes_list.value.extend(value)
        elif all(isinstance(v, int) for v in value):
            feature.int64_list.value.extend(value)
        else:
            feature.float_list.value.extend(value)
    return built


def example_list(documents, **context):
    """A serialized ExampleListWithContext."""
    return ExampleListWithContext(context=example(**context), examples=documents).SerializeToString()


@pytest.fixture(scope="session")
def ranker():
    """A ranker of columns of every kind."""
    return tfr_smooth.Ranker(**SMALL).fit(FRAME, label="label", query="query", query_features=["age"])


@pytest.fixture(scope="session")
def recommender():
    """A recommender of the users 100 to 123 and the items "i0" to "i23"."""
    options = {"dim": 8, "softmax_epochs": 2, "softmax_batch_size": 4, "loss": None, "refit": False}
    fitted = recommendation.Recommender(**options, verbose=False)
    return fitted.fit(recommendation.Interactions(likes(), [*range(100, 124)], [f"i{number}" for number in range(24)]))


class Exported:
    """A ranker of three features, its export, and lists to score; the second has padding."""

    def __init__(self, folder):
        tf.keras.utils.set_random_seed(3)
        random = np.random.RandomState(0)
        self.features = (random.randn(4, 5, 3) * [1.0, 30.0, 0.1] + [0.0, 100.0, 0.0]).astype(np.float32)
        self.mask = np.arange(5) < np.array([[5], [3], [1], [4]])
        self.model = models.FeedForwardScorer(hidden=[8], normalization="standardize")
        self.model.adapt([({"features": self.features, "mask": self.mask}, None)])
        self.model({"features": self.features, "mask": self.mask}, training=True)  # updates the batch statistics
        self.card = {
            "description": "For the tests.",
            "data": {"train": "synthetic | made up", "queries": np.int64(4)},
            "loss": losses.SmoothINDCGLoss(topn=5),
            "metrics": {"valid": {"ndcg": np.float32(0.5), "map": float("nan")}, "test": {"ndcg": 0.25, "map": 0.125}},
        }
        self.path = serving.export_ranker(self.model, folder, num_features=3, card=self.card)

    def scores(self, features=None, mask=None):
        """The scores of the Keras model."""
        features = self.features if features is None else features
        inputs = {"features": features, "mask": np.ones(features.shape[:2], bool) if mask is None else mask}
        return self.model(inputs, training=False).numpy()


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    return Exported(tmp_path_factory.mktemp("serving") / "ranker")


@pytest.fixture(scope="session")
def loaded(exported):
    return tf.saved_model.load(str(exported.path))


@pytest.fixture(scope="session")
def loader(tmp_path_factory):
    """The compiled load_and_run.cc."""
    libraries = pathlib.Path(tf.sysconfig.get_lib())
    if shutil.which("g++") is None:
        pytest.skip("TF Serving's loader needs g++, which is not installed")
    if not (libraries / "libtensorflow_cc.so.2").exists():
        pytest.skip("this TensorFlow has no libtensorflow_cc.so.2 (the wheels for Linux do)")
    program = tmp_path_factory.mktemp("loader") / "load_and_run"
    source = pathlib.Path(__file__).with_name("load_and_run.cc")
    command = ["g++", "-w", "-O0", *tf.sysconfig.get_compile_flags(), str(source), "-o", str(program)]
    # --no-as-needed: sessions and kernels register themselves in a library that nothing else references.
    command += [f"-L{libraries}", "-Wl,--no-as-needed", "-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"]
    done = subprocess.run([*command, f"-Wl,-rpath,{libraries}"], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return program


@pytest.fixture
def run_in_cpp(loader, tmp_path):
    """A function that runs requests (signature, arrays) on a model, and returns the outputs or error text of each."""

    def run(model, requests):
        folders = [tmp_path / f"request-{i}" for i in range(len(requests))]
        for folder, (signature, arrays) in zip(folders, requests, strict=True):
            (folder / "inputs").mkdir(parents=True)
            (folder / "signature").write_text(signature)
            for name, array in arrays.items():
                proto = tf.make_tensor_proto(array)
                (folder / "inputs" / name).write_bytes(proto.SerializeToString())
        command = [str(loader), str(model), *map(str, folders)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300)
        assert done.returncode == 0, done.stderr
        return [answer(folder) for folder in folders]

    def answer(folder):
        if (folder / "error").exists():
            return (folder / "error").read_text(errors="replace")
        files = (folder / "outputs").iterdir()
        return {file.name: tf.make_ndarray(TensorProto.FromString(file.read_bytes())) for file in files}

    return run
