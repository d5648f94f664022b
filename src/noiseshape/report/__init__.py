"""Pictures and the HTML report: what a plan or a release says, to be looked at."""

from .compose import of_parts, of_plan, of_release
from .page import Report
from .picture import Picture

__all__ = ["Picture", "Report", "of_parts", "of_plan", "of_release"]
