"""A machine with other things to do is no failure: hypothesis doesn't watch the clock."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
