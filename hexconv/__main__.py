"""`python -m hexconv` is `hexconv`."""

from hexconv.cli import main

main()
