"""isometry with the extension that ISOMETRY_EXTENSION names, one of another build: imported before isometry."""

import os
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader

if path := os.environ.get("ISOMETRY_EXTENSION"):
    name = "isometry._core"
    loader = ExtensionFileLoader(name, path)
    sys.modules[name] = module_from_spec(spec_from_loader(name, loader, origin=path))
    loader.exec_module(sys.modules[name])
