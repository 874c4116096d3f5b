"""`python -m isometry`: the command line, the same as the console script `isometry`."""

import sys

from isometry.cli import main

sys.exit(main())
