"""TF-Ranking's Keras names for this library's classes: `from tfr_smooth import keras_ranking as tfr`.

For programs that move from TF-Ranking to Keras 3. Also works with Keras 2. `tfr_smooth.tf_ranking.tfr`, which needs
Keras 2, is TF-Ranking itself.
"""

from tfr_smooth.keras_ranking import keras, utils

__all__ = ["keras", "utils"]
