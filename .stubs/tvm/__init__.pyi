# TVM 0.27's objects get their fields when its library is loaded, and its annotations speak of the C++ side: checked
# against them, right code fails. For the type checker TVM is therefore untyped.
from typing import Any

def __getattr__(name: str) -> Any: ...
