"""The checks of tests/checks.py reject every wrong part and accept correct ones."""

import pytest

from tests import checks, references, wrong_parts
from tfr_smooth import measures


@pytest.mark.parametrize("wrong", wrong_parts.WRONG_PARTS, ids=lambda wrong: wrong.part.__name__)
def test_a_wrong_part_is_rejected(wrong):
    with pytest.raises(AssertionError):
        wrong.rejected_by(wrong.subject())


def test_every_check_rejects_a_wrong_part():
    rejecting = [wrong.rejected_by for wrong in wrong_parts.WRONG_PARTS]
    for check in (*checks.METRIC_CHECKS, *checks.COMMON_CHECKS, *checks.BASE_CLASS_CHECKS):
        assert check in rejecting, check.__name__
    assert wrong_parts.check_unknown_shapes in rejecting


@pytest.mark.parametrize("metric", [name for name in measures.MEASURES if name not in references.CORRELATIONS])
def test_an_offset_of_half_a_rank_is_rejected_with_every_other_measure(metric):
    with pytest.raises(AssertionError):
        checks.check_sharp_limit(wrong_parts.arctan(wrong_parts.ArctanHalfARankOff, metric))


def test_a_correlation_does_not_depend_on_an_offset_of_the_positions():
    checks.check_sharp_limit(wrong_parts.arctan(wrong_parts.ArctanHalfARankOff, "spearman"))


def checks_of_unregistered_losses():
    needing_a_registered_loss = (checks.check_reference, checks.check_config, checks.check_invalid_arguments)
    return [
        check
        for check in (*checks.METRIC_CHECKS, *checks.COMMON_CHECKS, *checks.BASE_CLASS_CHECKS)
        if check not in needing_a_registered_loss
    ]


@pytest.mark.parametrize("check", checks_of_unregistered_losses(), ids=lambda check: check.__name__)
@pytest.mark.parametrize("metric", ["ndcg", pytest.param("mrr", marks=pytest.mark.slow)])
def test_a_correct_relaxation_is_accepted(metric, check):
    check(wrong_parts.arctan(wrong_parts.Arctan, metric))
