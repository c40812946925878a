"""Command lines as agents write them, and whether each is a search for code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.hook.code import reason_of
from serena_central.hook.lines import searches_in
from serena_central.hook.search import Search

STOPPED = [
    "grep -rn 'class Foo' src",
    "grep -rn 'class Foo' src/ | head -20",
    "grep -rnE '(class|interface)\\s+User\\b' --include='*.ts' --include='*.tsx' .",
    "grep -n 'def total' src/cart.py",
    'grep -rn "func (s \\*Server) Start" --include=*.go .',
    "grep -R --include=*.py 'foo\\|bar' .",
    "egrep -rn 'getUser|setUser' .",
    "fgrep -rn 'os.path.join(' lib",
    "grep -rnw handleSubmit components",
    "grep -rl UserService .",
    "grep -A 5 -rn 'fn main' src",
    "grep -e 'class A' -e 'class B' -r .",
    "grep TODO src/*.py",
    "rg 'class Foo'",
    "rg -n -t py 'def test_'",
    "rg -tpy timeout",
    "rg --type rust 'impl .* for Foo'",
    "rg -g '*.ts' 'export const'",
    "rg --hidden -C3 fooBar",
    "rg 'useState' src/components/App.tsx",
    "rg --files -g '*.rs'",
    "rg -l 'import os' 2>/dev/null",
    "rg foo_bar; echo done",
    "ugrep -rn -O go 'type Config struct'",
    "ug -t python 'async def run'",
    "ag --python 'class Model'",
    "ag parseRequest",
    "ack --type=java 'public class'  src",
    "git grep -n 'class Foo'",
    "git grep parse_line -- '*.c'",
    "git -C backend grep NewAsset",
    "find . -name '*.py'",
    "find src -type f -name 'user*.ts' -not -path '*/node_modules/*'",
    "find . -name '*.go' | head",
    "find . -name '*.py' | xargs grep -n 'class Foo'",
    "find . -name '*.py' -exec grep -l 'import os' {} +",
    "find . -type f -name '*.rs' -exec grep -n 'fn new' {} \\;",
    "cd /repo && grep -rn 'class Foo' .",
    "cd backend; rg NewAsset",
    "LC_ALL=C grep -rn 'def x' lib",
    "env LC_ALL=C rg 'def x' lib",
    "timeout 10 grep -rn 'class X' .",
    "bash -lc \"rg -n 'class Foo' src/\"",
    "/usr/bin/grep -rn 'class Foo' .",
    "ls src && grep -rn 'def run' src",
    "grep -rn 'class Foo' src | grep -v test | sort",
    "grep -rn 'class Foo' . 2>&1 | head",
]

LEFT_ALONE = [
    "ls -la",
    "git status",
    "make test",
    "cat src/cart.py",
    "cat src/cart.py | grep class",
    "ps aux | grep PythonServer",
    "git log --oneline | grep fooBar",
    "pytest -q 2>&1 | grep -E 'FAILED|ERROR'",
    "npm test | grep -i getUser",
    "docker ps | rg MyService",
    "grep -rn 'connection refused' /var/log",
    "grep -rn error .",
    "grep TODO README.md",
    "grep '\"getUser\"' package.json",
    "rg 'release notes'",
    "rg -t md getUser",
    "rg --files",
    "rg -uu fooBar",
    "rg --no-ignore 'class Foo'",
    "rg -U 'class Foo'",
    "rg --files -u -g '*.py'",
    "rg '\\p{Lu}oo' -t py",
    "ag -g '(a|b)\\.py'",
    "find . -name '*.md'",
    "find . -name node_modules -type d",
    "find . -name '*.pyc' -delete",
    "find . -name '*.py' -mtime -1",
    "find . -name '*.py' -exec wc -l {} +",
    "find . -name '*.py' | xargs wc -l",
    "grep -rl OldName src | xargs sed -i s/OldName/NewName/",
    "grep -rn 'class Foo' src > found.txt",
    "grep -c 'def ' src/cart.py",
    "grep -rn 'class Foo' src | wc -l",
    "grep -q fooBar src/a.py && echo yes",
    "grep -rvn 'class Foo' src",
    "make && grep -rn 'class Foo' src",
    "git commit -m 'grep class Foo'",
    "echo 'grep -rn class Foo src'",
    "python -c 'print(\"class Foo\")'",
    "for f in src/*.py; do grep -n 'class Foo' $f; done",
    'grep -rn "$PATTERN" src',
    "files=$(grep -rl 'class Foo' src)",
    "grep -rn `cat pattern` src",
    "grep -f patterns.txt -r src",
    "rg 'class Foo' --replace Bar src",
    "git grep 'class Foo' HEAD~3 -- src",
    "git grep --cached fooBar",
    "cat <<'EOF'\ngrep -rn 'class Foo' src\nEOF",
    "if grep -rn 'class Foo' src; then echo yes; fi",
    "grep 'unfinished",
    "grep",
    "rg",
    "find",
    "cd src",
    "# grep -rn 'class Foo' src",
    "",
]


@pytest.mark.parametrize("line", STOPPED)
def test_a_line_that_only_searches_for_code_is_seen(line: str) -> None:
    assert [reason_of(search) for search in searches_in(line) if reason_of(search)]


@pytest.mark.parametrize("line", LEFT_ALONE)
def test_a_line_that_does_anything_else_is_left_alone(line: str) -> None:
    assert not any(reason_of(search) for search in searches_in(line))


@pytest.mark.parametrize(
    ("line", "search"),
    [
        ("grep -rn --include=*.py 'a\\|b(' .", Search("a|b\\(", paths=(".",), globs=("*.py",))),
        ("grep -rniF 'a.b' x y", Search("a\\.b", paths=("x", "y"), no_case=True)),
        ("rg -w -e foo -e bar", Search("\\b(?:foo|bar)\\b")),
        ("cd a && cd b && rg Foo src/**/*.ts", Search("Foo", paths=("src",), globs=("*.ts",), folder="a/b")),
        ("git -C sub grep -E 'a+' -- lib", Search("a+", paths=("lib",), folder="sub")),
        ("find x -name '*.go' -o -name '*.ts'", Search("*.go", True, paths=("x",), globs=("*.go", "*.ts"))),
        ("rg \"say \\\"hi\\\"\" 'it'\\''s'", Search('say "hi"', paths=("it's",))),
        ("rg -S foo_bar", Search("foo_bar", no_case=True)),
        ("rg -S '\\SFoo'", Search("\\SFoo")),
        ("grep -rE '\\<foo\\>[[:space:]]+' .", Search("\\bfoo\\b[\\s]+", paths=(".",))),
        ("grep -n foo src/*.py tests", Search("foo", paths=("src", "tests"))),
        ("rg foo -g src -g '*.py'", Search("foo")),
        ("find . -iname 'A*.py'", Search("A*.py", True, paths=(".",), globs=("A*.py",), no_case=True)),
        ("rg --files -g '*.py' -g '*.go'", Search("*.py", True, globs=("*.py", "*.go"))),
        ("rg -- -x src", Search("-x", paths=("src",))),
        ("grep -rn2 Foo src", Search("Foo", paths=("src",))),
    ],
)
def test_what_is_searched_and_where_is_read_off_the_words(line: str, search: Search) -> None:
    assert searches_in(line) == [search]


PROGRAMS = ["grep", "rg", "git", "find", "cd", "xargs", "bash", "-c", "-rn", "-e", "-exec", "--include", "*.py", "src/"]
SIGNS = ["'", '"', "\\", "|", "&&", ";", "$(", "`", "$X", "<<EOF", "(", ")", "{", ">", "2>&1", "\n", "#", "=", "A=1"]
WORDS = st.sampled_from([*PROGRAMS, *SIGNS, "class Foo"])


@given(st.lists(WORDS | st.text(max_size=8), max_size=12), st.sampled_from(["", " "]))
def test_no_line_is_too_strange(parts: list[str], between: str) -> None:
    for search in searches_in(between.join(parts)):
        assert isinstance(search, Search)
        assert reason_of(search) is None or search.pattern


SEARCHES = ("grep", "rg", "ag", "ack", "ug", "find")


@given(st.text(max_size=60).filter(lambda line: not any(name in line for name in SEARCHES)))
def test_a_line_that_names_no_program_for_searching_makes_no_search(line: str) -> None:
    assert searches_in(line) == []


@given(st.text(alphabet=st.characters(exclude_characters="\n'"), max_size=30))
def test_words_that_are_only_said_are_no_search(text: str) -> None:
    assert searches_in(f"echo '{text} grep -rn class Foo src'") == []
