"""Write a whole network as C: it calls the chains in order, and an operator for each node that lies between them."""

from typing import TYPE_CHECKING

from hexconv.homes import deferred

if TYPE_CHECKING:
    from hexconv.network.built_network import BuiltNetwork, Wanted, build_network
    from hexconv.network.called_network import LoadedNetwork, load

_HOMES = {
    "hexconv.network.built_network": ("BuiltNetwork", "Wanted", "build_network"),
    "hexconv.network.called_network": ("LoadedNetwork", "load"),
}

__all__ = ["BuiltNetwork", "LoadedNetwork", "Wanted", "build_network", "load"]

__getattr__ = deferred(__name__, _HOMES)
