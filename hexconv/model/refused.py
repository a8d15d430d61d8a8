"""The exception that carries the reason why a part of a model is not taken to the place that lists it."""


class Refused(Exception):
    """No chain can have a node; the text is the reason, without the node's name.

    Who catches it adds the name; it never reaches the user as it is.
    """
