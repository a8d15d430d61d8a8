"""Read an ONNX model, find every maximal conv2d chain in it, and name each conv that is in no chain."""

from hexconv.model.imported import Imported, import_model, write_network
from hexconv.model.manifest import MANIFEST, ChainEntry, Manifest, NotTaken

__all__ = ["ChainEntry", "Imported", "MANIFEST", "Manifest", "NotTaken", "import_model", "write_network"]
