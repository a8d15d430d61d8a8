"""The board of bytes: what the best plans of known networks move, beside the planners of QNN and DeFiNES."""
