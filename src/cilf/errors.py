"""The exceptions users catch: one root, three reasons."""


class CilfError(Exception):
    """Root of every error cilf raises on purpose: catch this one to catch them all."""


class BadInput(CilfError, ValueError):
    """Data, labels or files that cannot be used; the message names the argument and the remedy."""


class BadConfig(CilfError, ValueError):
    """A name, parameter or option that cannot be used; the message names the nearest known one."""


class NotFitted(CilfError, ValueError, AttributeError):
    """A learner was asked for something only a fitted one can give."""
