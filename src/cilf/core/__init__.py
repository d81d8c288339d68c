"""Types, validation, names, parameters and seeded randomness for all packages.

Nothing here imports any other part of cilf but its errors.
"""

from cilf.core.types import Detection, Label, Labelled, Window, WindowRecord

__all__ = ["Detection", "Label", "Labelled", "Window", "WindowRecord"]
