"""Unbiased learning to rank from clicks: simulated users, and propensities estimated from click logs."""

from tfr_smooth.clicks.propensities import (
    ClickModel,
    fit_position_based,
    propensities_from_random_rankings,
    relevance_from_clicks,
)
from tfr_smooth.clicks.simulation import Cascade, ClickLog, PositionBased, TrustBias, UserModel, simulate

__all__ = [
    "Cascade",
    "ClickLog",
    "ClickModel",
    "PositionBased",
    "TrustBias",
    "UserModel",
    "fit_position_based",
    "propensities_from_random_rankings",
    "relevance_from_clicks",
    "simulate",
]
