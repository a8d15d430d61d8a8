"""A packed chain for other compilers: `linalg` on tensors, in loops as the plan says."""
