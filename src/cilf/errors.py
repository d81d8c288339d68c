"""The exceptions of cilf and their common root."""


class CilfError(Exception):
    """Root of all exceptions that cilf raises on purpose."""


class BadInput(CilfError, ValueError):
    """Data, labels or files cannot be used. The message names the argument and the remedy."""


class BadConfig(CilfError, ValueError):
    """A name, parameter or option cannot be used. The message names the nearest known one."""


class NotFitted(CilfError, ValueError, AttributeError):
    """A method that needs a fitted learner was called before ``fit``."""
