"""Keras losses, and the table of them by name."""

from tfr_smooth.losses.approx import ApproxMAPLoss, ApproxNDCGLoss, ApproxPrecisionLoss
from tfr_smooth.losses.base import MetricLoss, RankingLoss
from tfr_smooth.losses.fastsort import FastSortMAPLoss, FastSortNDCGLoss, FastSortPrecisionLoss
from tfr_smooth.losses.lambda_loss import LambdaLoss
from tfr_smooth.losses.list_ap import ListAPLoss
from tfr_smooth.losses.list_mle import ListMLELoss
from tfr_smooth.losses.list_net import ListNetLoss
from tfr_smooth.losses.mean_squared import MeanSquaredLoss
from tfr_smooth.losses.neuralsort import NeuralSortMAPLoss, NeuralSortNDCGLoss, NeuralSortPrecisionLoss
from tfr_smooth.losses.rank_net import RankNetLoss
from tfr_smooth.losses.sinkhorn import SinkhornMAPLoss, SinkhornNDCGLoss, SinkhornPrecisionLoss
from tfr_smooth.losses.smoothi import SmoothIMAPLoss, SmoothINDCGLoss, SmoothIPrecisionLoss
from tfr_smooth.losses.softrank import SoftNDCGLoss, SoftPrecisionLoss
from tfr_smooth.losses.softsort import SoftSortMAPLoss, SoftSortNDCGLoss, SoftSortPrecisionLoss
from tfr_smooth.losses.table import NAMES, TABLE, Entry, get, hyperparameters

__all__ = [
    "NAMES",
    "TABLE",
    "ApproxMAPLoss",
    "ApproxNDCGLoss",
    "ApproxPrecisionLoss",
    "Entry",
    "FastSortMAPLoss",
    "FastSortNDCGLoss",
    "FastSortPrecisionLoss",
    "LambdaLoss",
    "ListAPLoss",
    "ListMLELoss",
    "ListNetLoss",
    "MeanSquaredLoss",
    "MetricLoss",
    "NeuralSortMAPLoss",
    "NeuralSortNDCGLoss",
    "NeuralSortPrecisionLoss",
    "RankNetLoss",
    "RankingLoss",
    "SinkhornMAPLoss",
    "SinkhornNDCGLoss",
    "SinkhornPrecisionLoss",
    "SmoothIMAPLoss",
    "SmoothINDCGLoss",
    "SmoothIPrecisionLoss",
    "SoftNDCGLoss",
    "SoftPrecisionLoss",
    "SoftSortMAPLoss",
    "SoftSortNDCGLoss",
    "SoftSortPrecisionLoss",
    "get",
    "hyperparameters",
]
