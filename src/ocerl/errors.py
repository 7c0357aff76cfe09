"""The one error a user is meant to read."""


class OcerlError(ValueError):
    """Something the user gave cannot be used; the message says what, and what would be right.

    The command line prints it as a single line and exits with status 2.
    """
