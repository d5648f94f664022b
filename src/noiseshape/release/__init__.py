"""What leaves the house: measurements."""

from .measure import Measurement, measure

__all__ = ["Measurement", "measure"]
