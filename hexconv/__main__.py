"""`python -m hexconv` is `hexconv`."""

from hexconv.cli.app import main

main()
