"""From a network to chains: an ONNX model read, every maximal conv2d chain found, what isn't taken named."""

from hexconv.model.imported import Imported, import_model
from hexconv.model.manifest import MANIFEST, ChainEntry, Manifest, NotTaken
from hexconv.model.write import write_network

__all__ = ["ChainEntry", "Imported", "MANIFEST", "Manifest", "NotTaken", "import_model", "write_network"]
