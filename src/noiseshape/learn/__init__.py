"""Estimators in scikit-learn's manner, whose fit is one private release: the extra ``learn``.

rows.py          what is handed to fit, told by its shape and types alone
estimator.py     bounds, budget, ledger: what all of them share
covariance.py    PrivateCovariance
pca.py           PrivatePCA
ridge.py         PrivateRidge
"""

import importlib.util

if importlib.util.find_spec("sklearn") is None:
    raise ImportError(
        "noiseshape.learn needs scikit-learn, which is not installed: "
        "pip install 'noiseshape[learn]'."
    )

from .covariance import PrivateCovariance
from .pca import PrivatePCA
from .ridge import PrivateRidge

__all__ = ["PrivateCovariance", "PrivatePCA", "PrivateRidge"]
