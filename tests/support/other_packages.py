"""The marks of tests with other packages, whose warnings are theirs."""

import pytest

IGNORED = "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
MARKS = [pytest.mark.extra, pytest.mark.filterwarnings(*IGNORED)]
