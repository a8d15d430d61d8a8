"""Rules of the HVX kernel: how tensors lie in its nest of rows, and how rows are cut into tiles. No TVM."""
