"""What everything else shares: the types, the one validation module, seeded randomness.

Nothing here imports any other part of cilf but its errors.
"""

from cilf.core.types import Detection, Label, Labelled, Window, WindowRecord

__all__ = ["Detection", "Label", "Labelled", "Window", "WindowRecord"]
