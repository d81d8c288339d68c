from __future__ import annotations

import threading

import pytest

from cilf.core.progress import listen, report


class Heard(list[tuple[str, int, int]]):
    def __call__(self, stage: str, done: int, total: int) -> None:
        self.append((stage, done, total))


def test_everything_inside_the_block_is_heard_in_order() -> None:
    heard = Heard()
    report("fit", 0, 2)
    with listen(heard):
        report("fit", 1, 2)
        report("fit", 2, 2)
    report("update", 1, 1)
    assert heard == [("fit", 1, 2), ("fit", 2, 2)]


def test_the_innermost_listener_hears_and_the_outer_one_comes_back() -> None:
    outer, inner = Heard(), Heard()
    with listen(outer):
        with listen(inner):
            report("a", 1, 1)
        report("b", 1, 1)
    assert inner == [("a", 1, 1)]
    assert outer == [("b", 1, 1)]


def fail_while(heard: Heard) -> None:
    with listen(heard):
        raise RuntimeError("stop")


def test_listening_ends_with_an_error() -> None:
    heard = Heard()
    with pytest.raises(RuntimeError, match="stop"):
        fail_while(heard)
    report("after", 1, 1)
    assert heard == []


def test_an_error_of_the_listener_is_not_swallowed() -> None:
    def broken(stage: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with listen(broken), pytest.raises(KeyboardInterrupt):
        report("fit", 1, 1)


def test_work_in_another_thread_is_not_heard_here() -> None:
    here, there = Heard(), Heard()

    def work() -> None:
        report("unheard", 1, 1)
        with listen(there):
            report("other", 1, 1)

    with listen(here):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        report("own", 1, 1)
    assert there == [("other", 1, 1)]
    assert here == [("own", 1, 1)]
