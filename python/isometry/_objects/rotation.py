"""The rotation of one direction to another in their plane: R = H(w) H(ah), w = ah + bh, of unit vectors ah and bh."""

from isometry._objects._declaration import Declaration, Determinant

ROTATION = Declaration("Rotation", "rotation", required=2, determinant=Determinant())
