"""Tests of the site that `make site` has built: not run without it, those in a browser not without Chromium."""

import site_widths


def missing():
    """Why which tests are not run: fixture, or "" for all -> reason."""
    found = {} if (site_widths.BUILT / "index.html").is_file() else {"": "the site is not built (make site)"}
    return found if found or site_widths.browser() else {"browser": "there is no Chromium (apt install chromium)"}


def pytest_collection_modifyitems(config, items):
    left = [
        item
        for item in items
        if item.nodeid.startswith("tests/site/") and any(not name or name in item.fixturenames for name in missing())
    ]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def pytest_report_collectionfinish():
    return [f"tests/site: some tests are not run, {reason}" for reason in missing().values()]
