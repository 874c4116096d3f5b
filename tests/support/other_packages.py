"""Marks of tests that run other packages and ignore their warnings."""

import pytest

IGNORED = "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
MARKS = [pytest.mark.extra, pytest.mark.filterwarnings(*IGNORED)]
