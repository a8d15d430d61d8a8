"""Write a whole network as C: it calls the chains in order, and an operator for each node that lies between them."""

from hexconv.network.built_network import BuiltNetwork, Wanted, build_network
from hexconv.network.called_network import LoadedNetwork, load

__all__ = ["BuiltNetwork", "LoadedNetwork", "Wanted", "build_network", "load"]
