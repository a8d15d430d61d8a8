"""Rules of the HVX kernel: the layouts of its nest of rows, and the tiles that rows are cut into. No TVM."""
