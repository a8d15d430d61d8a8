"""Run a lowered module, on this machine or on the Hexagon simulator, and judge its result."""
