"""Build, walk and mark TIR: statements, trees, named loops, parts of a nest, guards."""
