"""Why a part of a model is not taken: a reason for people, carried to whoever lists it."""


class Refused(Exception):
    """A node that no chain can have; its text is the reason, without the node's name. It never reaches the user raw."""
