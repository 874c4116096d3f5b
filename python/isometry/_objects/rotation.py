"""The rotation of one direction to another in their plane: R = H(w) H(ah), w = ah + bh, of unit vectors ah and bh."""

from isometry._objects._declaration import Argument, Declaration

ROTATION = Declaration(
    "Rotation",
    "rotation",
    (Argument("start", "n", "real"), Argument("end", "n", "real")),
    required=2,
)
