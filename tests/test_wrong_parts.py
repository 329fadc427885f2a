"""The checks reject every wrong part, and no right one."""

import pytest

from tests import checks, wrong_parts
from tfr_smooth import registry


@pytest.mark.parametrize("wrong", wrong_parts.WRONG_PARTS, ids=lambda wrong: wrong.part.__name__)
def test_a_wrong_part_is_rejected(wrong):
    with pytest.raises(AssertionError):
        wrong.rejected_by(wrong.subject())


@pytest.mark.parametrize("wrong", wrong_parts.WRONG_PARTS, ids=lambda wrong: wrong.part.__name__)
def test_the_same_check_accepts_the_right_part(wrong):
    wrong.rejected_by(checks.SUBJECTS[wrong.of])


@pytest.mark.parametrize("metric", registry.METRICS)
def test_a_relaxation_half_a_rank_off_is_rejected_with_every_metric(metric):
    with pytest.raises(AssertionError):
        checks.check_sharp_limit(wrong_parts.arctan(wrong_parts.ArctanHalfARankOff, metric))


def without_config_and_reference():
    known_to_all = (checks.check_reference, checks.check_config, checks.check_bad_arguments)
    return [
        check for check in (*checks.OF_METRICS, *checks.EVERYWHERE, *checks.OF_THE_BASE) if check not in known_to_all
    ]


@pytest.mark.parametrize("check", without_config_and_reference(), ids=lambda check: check.__name__)
@pytest.mark.parametrize("metric", ["ndcg", pytest.param("mrr", marks=pytest.mark.slow)])
def test_a_right_relaxation_is_accepted(metric, check):
    check(wrong_parts.arctan(wrong_parts.Arctan, metric))
