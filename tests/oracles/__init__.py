"""The real implementations, as far as one can call them: each module binds one library.

Nothing of this is needed by the package. `make test-oracles` installs what it needs under `build/oracles`.
"""
