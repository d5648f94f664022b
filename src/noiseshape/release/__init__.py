"""What leaves the house: measurements."""

from .measurement import Measurement, measure

__all__ = ["Measurement", "measure"]
