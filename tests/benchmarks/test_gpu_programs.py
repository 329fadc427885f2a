"""The files for machines without TensorFlow contain the losses, and JAX computes the same from them."""

import importlib.util
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.xla.service import hlo_pb2

from tests.benchmarks import scripts
from tfr_smooth import losses

pytestmark = pytest.mark.slow

SHAPES = {"4x6": (4, 6), "3x9": (3, 9)}
LOSSES = {
    "smoothi_ndcg": losses.SmoothINDCGLoss(alpha=1.0, delta=0.1, reduction="sum"),
    "approx_ndcg": losses.ApproxNDCGLoss(alpha=10.0, reduction="sum"),
    "soft_ndcg": losses.SoftNDCGLoss(sigma=1.0, reduction="sum"),
}
NAMES = sorted(f"{loss}_{shape}" for loss in LOSSES for shape in SHAPES)


def start(*arguments, without, folder):
    """Runs the script where the package `without` cannot be imported."""
    (folder / f"{without}.py").write_text("raise ModuleNotFoundError")
    path = os.pathsep.join(filter(None, [str(folder), *sys.path]))
    command = [sys.executable, str(scripts.BENCHMARKS / "gpu_programs.py"), *scripts.QUICK, *arguments]
    environment = {**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "-1", "JAX_PLATFORMS": "cpu"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpu") / "new" / "programs"
    (blocked := folder.parents[1] / "blocked").mkdir()
    done = start(f"--write={folder}", f"--shapes={','.join(SHAPES)}", without="jax", folder=blocked)
    assert done.returncode == 0, done.stderr
    assert sorted(path.stem for path in folder.iterdir()) == NAMES
    return folder


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_file_contains_inputs_and_the_value_and_gradient_of_the_loss(programs, loss, shape):
    with np.load(programs / f"{loss}_{shape}.npz") as file:
        labels, scores, value, gradient = (file[name] for name in ("labels", "scores", "value", "gradient"))
    assert labels.shape == scores.shape == SHAPES[shape] and labels.dtype == scores.dtype == np.float32
    assert len(np.unique(scores)) == scores.size
    variable = tf.Variable(scores)
    with tf.GradientTape() as tape:
        expected = LOSSES[loss](labels, variable)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(gradient, tape.gradient(expected, variable), atol=1e-6)
    assert value > 0.0 and np.abs(gradient).max() > 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_a_program_takes_a_batch_and_needs_nothing_of_the_platform(programs, name):
    with np.load(programs / f"{name}.npz") as file:
        module = hlo_pb2.HloModuleProto.FromString(file["hlo"].tobytes())
        shape = list(file["scores"].shape)
    program = module.host_program_shape
    assert [list(each.dimensions) for each in program.parameters] == [shape, shape]
    assert [list(each.dimensions) for each in program.result.tuple_shapes] == [[], shape]
    codes = [each.opcode for computation in module.computations for each in computation.instructions]
    assert "reduce" in codes and not set(codes) & {"custom-call", "infeed", "outfeed"}
    if name.startswith("smoothi"):  # One loop for each precision, and none over the parts of a batch.
        assert codes.count("while") == 2


def test_without_jax_the_error_is_one_line(programs, tmp_path):
    done = start(f"--run={programs}", without="jax", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "--run needs JAX: pip install jax, or jax[cuda13] for a GPU.\n"


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_jax_computes_the_same_without_tensorflow(programs, tmp_path):
    done = start(f"--run={programs}", without="tensorflow", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in NAMES:
        loss, _, shape = name.rpartition("_")
        assert f"| {loss} | {shape} | " in done.stdout


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_a_different_gradient_is_an_error(programs, tmp_path):
    shutil.copy(programs / "approx_ndcg_4x6.npz", tmp_path)
    with np.load(programs / "soft_ndcg_3x9.npz") as file:
        np.savez(tmp_path / "soft_ndcg_3x9.npz", **{**file, "gradient": 1.01 * file["gradient"]})
    done = start(f"--run={tmp_path}", without="tensorflow", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "Different from TensorFlow: soft_ndcg 3x9 (ours)."
