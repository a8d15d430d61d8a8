"""Build the HTML page of `hexconv report`, with its plots."""
