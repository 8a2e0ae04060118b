"""Answers are computed once until the run changes, and do not pile up."""

from dataclasses import dataclass

from app import cached


@dataclass(eq=False)
class Counted:
    """Stands for a run: what `ask` needs of one."""

    version: int = 0
    asked: int = 0


def question(run: Counted, number: int = 0, *, word: str = "") -> tuple[int, int, str]:
    run.asked += 1
    return run.version, number, word


def test_an_answer_is_computed_once_for_each_arguments():
    run = Counted()
    for _ in range(3):
        assert cached.ask(question, run, 1, word="a") == (0, 1, "a")
    assert cached.ask(question, run, 2, word="a") == (0, 2, "a")
    assert run.asked == 2


def test_a_run_that_grew_is_asked_again():
    run = Counted()
    cached.ask(question, run)
    run.version = 1
    assert cached.ask(question, run) == (1, 0, "")


def test_two_runs_do_not_share_answers():
    one, other = Counted(version=1), Counted(version=1)
    cached.ask(question, one, 5)
    cached.ask(question, other, 5)
    assert (one.asked, other.asked) == (1, 1)


def test_the_answer_used_longest_ago_goes_first():
    run = Counted()
    for number in range(cached.MOST + 1):
        cached.ask(question, run, number)
        cached.ask(question, run, 1)
    before = run.asked
    cached.ask(question, run, 1)
    assert run.asked == before
    cached.ask(question, run, 0)
    assert run.asked == before + 1
