"""`hexconv doctor`: what this machine can run, and what is missing for the rest."""


def doctor(*, wide: bool = False, json: bool = False) -> int:
    """Show every part that hexconv needs, whether it is here, and the command that installs what is missing.

    Args:
        wide: show all columns of tables.
        json: print JSON instead.

    Returns:
        0 when everything needed is there, else 1.
    """
    from hexconv.cli.doctor_parts import show_parts  # imported here, so that `--help` doesn't wait for numpy

    return show_parts(wide, json)
