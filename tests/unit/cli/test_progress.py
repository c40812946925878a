"""What of long work is told where nobody watches."""

import pytest

from serena_central.cli.progress import Progress


def test_steps_are_told_once_and_how_far_one_is_not_at_every_word(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        for message, part in (("reading", None), ("reading", None), ("asking: 1 of 9", 0.1), ("done", None)):
            progress.says(message, part)
    assert capsys.readouterr() == ("", "reading\ndone\n")


def test_who_interrupts_is_told_what_to_do_next(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), Progress(interrupted="Run it again."):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "Run it again.\n"
