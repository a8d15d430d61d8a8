"""Find every layout by the words of the command line: system, name, shape, type and placement."""

from hexconv.layout.catalog.find import SYSTEMS, find, letters_of, options_of
from hexconv.layout.catalog.found import Found
from hexconv.layout.catalog.okk import OKK_NAMES
from hexconv.layout.catalog.placement import Beside, Placement, View

__all__ = ["find", "SYSTEMS", "Found", "letters_of", "options_of", "Placement", "Beside", "View", "OKK_NAMES"]
