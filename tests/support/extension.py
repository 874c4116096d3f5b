"""isometry with the extension that ISOMETRY_EXTENSION names, one of another build: imported before isometry."""

import os
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import spec_from_file_location


class Named:
    """Finds `isometry._core` at a path."""

    def __init__(self, path):
        self.path = path

    def find_spec(self, name, *_):
        if name == "isometry._core":
            return spec_from_file_location(name, self.path, loader=ExtensionFileLoader(name, self.path))
        return None


if path := os.environ.get("ISOMETRY_EXTENSION"):
    assert "isometry" not in sys.modules
    sys.meta_path.insert(0, Named(path))
