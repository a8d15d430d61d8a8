"""From a schedule to code."""
