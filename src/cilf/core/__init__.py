"""What all packages share: types, validation, names, parameters and seeded randomness.

Nothing here imports any other part of cilf but its errors.
"""

from cilf.core.types import Detection, Label, Labelled, Window, WindowRecord

__all__ = ["Detection", "Label", "Labelled", "Window", "WindowRecord"]
