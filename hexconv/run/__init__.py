"""Numbers by running."""
