"""Numbers by running: a lowered module on this machine or on the Hexagon simulator, and the verdict on its result."""
