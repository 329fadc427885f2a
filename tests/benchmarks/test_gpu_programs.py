"""The files for machines without TensorFlow contain the losses, and JAX computes the same from them."""

import importlib.util
import os

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.xla.service import hlo_pb2

from tests import helpers
from tests.documents import ROOT
from tfr_smooth import losses

pytestmark = pytest.mark.slow
LOSSES = {
    "smoothi_ndcg": losses.SmoothINDCGLoss(alpha=1.0, delta=0.1, reduction="sum"),
    "approx_ndcg": losses.ApproxNDCGLoss(alpha=10.0, reduction="sum"),
    "soft_ndcg": losses.SoftNDCGLoss(sigma=1.0, reduction="sum"),
}


def start(*arguments, without, folder):
    """Runs the script where the package `without` cannot be imported."""
    (folder / f"{without}.py").write_text("raise ModuleNotFoundError")
    quick = ["--threads=1", "--runs=1", "--warm_runs=1"]
    path = os.pathsep.join([str(folder), str(ROOT)])
    return helpers.run_python("benchmarks/gpu_programs.py", *quick, *arguments, PYTHONPATH=path, JAX_PLATFORMS="cpu")


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpu")
    done = start(f"--write={folder / 'programs'}", "--shapes=4x6", without="jax", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder / "programs"


@pytest.mark.parametrize("name", LOSSES)
def test_a_file_has_the_value_and_gradient_of_the_loss_and_a_program_for_any_platform(programs, name):
    with np.load(programs / f"{name}_4x6.npz") as file:
        labels, scores, value, gradient = (file[part] for part in ("labels", "scores", "value", "gradient"))
        module = hlo_pb2.HloModuleProto.FromString(file["hlo"].tobytes())
    variable = tf.Variable(scores)
    with tf.GradientTape() as tape:
        expected = LOSSES[name](labels, variable)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(gradient, tape.gradient(expected, variable), atol=1e-6)
    codes = [each.opcode for computation in module.computations for each in computation.instructions]
    assert "reduce" in codes and not set(codes) & {"custom-call", "infeed", "outfeed"}


def test_without_jax_the_error_is_one_line(programs, tmp_path):
    done = start(f"--run={programs}", without="jax", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "--run needs JAX: pip install jax, or jax[cuda13] for a GPU.\n"


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_jax_computes_the_same_without_tensorflow(programs, tmp_path):
    done = start(f"--run={programs}", without="tensorflow", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(f"| {name} | 4x6 | " in done.stdout for name in LOSSES)
