"""Which of the collected tests are run."""

import os


def leave_out(config, items, which):
    """Do not run the tests for which that holds."""
    config.hook.pytest_deselected(items=list(filter(which, items)))
    items[:] = [item for item in items if not which(item)]


def only_where_present(config, items, folder, absent, variable):
    """Leave out the tests of a folder where what they need is absent, unless this environment variable asks for it."""
    own = lambda item: item.nodeid.startswith(folder)
    if os.environ.get(variable) != "1" and any(map(own, items)) and absent():
        leave_out(config, items, own)
