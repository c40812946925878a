import json

from click.testing import CliRunner

from serena_central.cli.languages import command, shortened


def test_the_list_is_a_table_of_at_most_120_columns() -> None:
    answer = CliRunner().invoke(command, ["list"])
    assert answer.exit_code == 0
    assert "python" in answer.output
    assert max(map(len, answer.output.splitlines())) <= 120


def test_the_list_as_json_has_everything_of_a_language() -> None:
    answer = CliRunner().invoke(command, ["list", "--json"])
    python = next(one for one in json.loads(answer.output) if one["language"] == "python")
    assert python["patterns"][:3] == ["*.py", "*.pyi", "*.pyw"]
    assert python["server"] == "ty"
    assert "pyrefly" in python["alternatives"]
    assert python["found"].endswith("/ty")


def test_a_long_row_of_words_ends_with_an_ellipsis_at_a_word() -> None:
    assert shortened(["*.aa", "*.bb"], 9) == "*.aa *.bb"
    assert shortened(["*.aa", "*.bb", "*.cc"], 12) == "*.aa *.bb …"
