"""Unbiased learning to rank from clicks: propensities and relevance estimated from click logs."""

from tfr_smooth.clicks.propensities import (
    ClickModel,
    fit_position_based,
    propensities_from_random_rankings,
    relevance_from_clicks,
)

__all__ = ["ClickModel", "fit_position_based", "propensities_from_random_rankings", "relevance_from_clicks"]
