"""`use_backend`: which calls its blocks hold for."""

import asyncio
import threading
from contextvars import copy_context

import pytest

import isometry as iso
from isometry._backend import current


def test_a_block_holds_for_its_thread():
    """Not for a thread that runs in a copy of its context, as `asyncio.to_thread` and free-threaded Python start it."""
    found = []

    def there():
        found.append(current())
        with iso.use_backend("gpu"):
            found.append(current())
        found.append(current())

    before = current()
    with iso.use_backend("gpu"):
        thread = threading.Thread(target=copy_context().run, args=(there,))
        thread.start()
        thread.join()
        asyncio.run(asyncio.to_thread(there))
        assert current() == "gpu"
    assert found == ["cpu", "gpu", "cpu"] * 2 and current() == before


def test_tasks_of_the_thread_have_the_backend_of_their_own_blocks():
    async def inside(name):
        with iso.use_backend(name):
            await asyncio.sleep(0)
            return current()

    async def both():
        return await asyncio.gather(inside("gpu"), inside("cpu"), inside("gpu"))

    before = current()
    assert asyncio.run(both()) == ["gpu", "cpu", "gpu"]
    assert current() == before


def test_blocks_end_in_any_order():
    """And with an error."""
    before = current()
    with pytest.raises(ZeroDivisionError), iso.use_backend("gpu"):
        1 / 0
    assert current() == before
    first, second = iso.use_backend("gpu"), iso.use_backend("cpu")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert current() == "cpu"
    second.__exit__(None, None, None)
    assert current() == before
