"""The files for machines without TensorFlow contain the losses."""

import numpy as np
import pytest
from tensorflow.compiler.xla.service import hlo_pb2

from tests import documents, helpers
from tfr_smooth import losses

pytestmark = pytest.mark.slow
LOSSES = {
    "smoothi_ndcg": losses.SmoothINDCGLoss(alpha=1.0, delta=0.1, reduction="sum"),
    "approx_ndcg": losses.ApproxNDCGLoss(alpha=10.0, reduction="sum"),
    "soft_ndcg": losses.SoftNDCGLoss(sigma=1.0, reduction="sum"),
}


def test_files_have_the_values_and_gradients_of_the_losses_and_programs_for_any_platform(tmp_path):
    """JAX, which runs the programs, is not installed here."""
    (tmp_path / "jax.py").write_text("raise ModuleNotFoundError")
    environment = {"PYTHONPATH": f"{tmp_path}:{documents.ROOT}"}
    helpers.check_run("benchmarks/gpu_programs.py", f"--write={tmp_path / 'programs'}", "--shapes=4x6", **environment)
    for name, loss in LOSSES.items():
        with np.load(tmp_path / "programs" / f"{name}_4x6.npz") as file:
            labels, scores, value, gradient = (file[part] for part in ("labels", "scores", "value", "gradient"))
            module = hlo_pb2.HloModuleProto.FromString(file["hlo"].tobytes())
        expected = helpers.value_and_gradient(loss, labels, scores)
        np.testing.assert_allclose(value, expected[0], rtol=1e-6)
        np.testing.assert_allclose(gradient, expected[1], atol=1e-6)
        codes = [each.opcode for computation in module.computations for each in computation.instructions]
        assert "reduce" in codes and not set(codes) & {"custom-call", "infeed", "outfeed"}
    done = helpers.run_python("benchmarks/gpu_programs.py", f"--run={tmp_path / 'programs'}", **environment)
    message = "--run needs JAX: pip install jax, or jax[cuda13] for a GPU.\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)
