"""Rules are matched as the format says, and deny wins."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.claude_config.command_lines import commands_of
from serena_central.claude_config.permissions import Permissions, SourcedRule, refusal_text, server_rule_fits
from serena_central.claude_config.problems import Place
from serena_central.claude_config.rules import BadRule, Verdict, parse_rule
from serena_central.claude_config.tiers import Tier
from tests.unit.claude_config.conftest import Machine

ROOT, HOME = Path("/home/ada/work/app"), Path("/home/ada")


def rules(**lists: list[str]) -> Permissions:
    verdicts: Mapping[str, Verdict] = {"deny": "deny", "ask": "ask", "allow": "allow"}
    return Permissions(
        ROOT,
        HOME,
        [
            SourcedRule(verdicts[verdict], parse_rule(text), Tier.PROJECT, Place("settings.json", 1, 1), ROOT)
            for verdict, texts in lists.items()
            for text in texts
        ],
    )


@pytest.mark.parametrize(
    ("pattern", "fits", "others"),
    [
        (".env", [".env", "a/.env", ".env/x"], [".envrc", "x.env", "env"]),
        ("./.env", [".env", ".env/x"], ["a/.env"]),
        ("/.env", [".env"], ["a/.env"]),
        ("**/.env", [".env", "a/b/.env"], [".envx"]),
        ("*.pem", ["x.pem", "a/b.pem"], ["x.pem.txt"]),
        (".env.*", [".env.local", "a/.env.x"], [".env"]),
        ("secrets/**", ["secrets/a", "secrets/b/c"], ["secrets", "x/secrets/a"]),
        ("./secrets/**", ["secrets/a"], ["x/secrets/a"]),
        ("secrets/", ["secrets/a", "x/secrets/a"], ["secrets"]),
        ("secrets", ["secrets", "secrets/a", "x/secrets/a"], ["secrets.txt"]),
        ("src/*.py", ["src/a.py"], ["src/b/a.py", "a.py"]),
        ("src/**/*.py", ["src/a.py", "src/b/c/a.py"], ["a.py"]),
        ("//home/ada/work/app/x", ["x", "x/y"], ["a/x"]),
        ("//home/ada/work/**", ["x", "a/x"], []),
        ("//etc/**", [], ["etc/passwd"]),
        ("~/work/app/x", ["x"], ["a/x"]),
        ("~/work", ["x", "a/x", ""], []),
        ("~/*.txt", [], ["a.txt"]),
        ("../other/**", [], ["other/x"]),
        ("../app/x", ["x"], ["y"]),
        ("**", ["x", "a/b"], []),
        ("*", ["x", "a/b"], []),
        (".", ["x", ""], []),
        ("{a,b}.key", ["a.key", "x/b.key"], ["c.key"]),
        ("a[bc].txt", ["ab.txt", "ac.txt"], ["ad.txt"]),
        ("with space.txt", ["with space.txt"], ["with"]),
        ("päth", ["päth"], ["path"]),
    ],
)
def test_paths(pattern: str, fits: list[str], others: list[str]) -> None:
    found = rules(deny=[f"Read({pattern})"])
    assert [path for path in (*fits, *others) if found.reading(path)] == fits
    assert [path for path in (*fits, *others) if found.editing(path)] == fits
    edits = rules(deny=[f"Edit({pattern})"])
    assert [path for path in (*fits, *others) if edits.editing(path)] == fits
    assert not [path for path in (*fits, *others) if edits.reading(path)]


def test_patterns_of_the_format_agree_with_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    patterns = [".env", "*.pem", "secrets/", "/top", "src/*.py", "src/**/x", "**/deep", "a/**", "doc/[ab]?.md"]
    paths = [
        *(".env", "x/.env", "k.pem", "x/k.pem", "secrets/a", "x/secrets/a", "top", "x/top", "src/a.py", "src/b/a.py"),
        *("src/x", "src/b/x", "x/deep", "deep/x", "a/b", "x/a/b", "doc/ab.md", "doc/cb.md", "doc/abc.md"),
    ]
    for pattern in patterns:
        (tmp_path / ".gitignore").write_text(pattern + "\n")
        told = subprocess.run(
            ["git", "-C", str(tmp_path), "check-ignore", "--no-index", *paths],
            capture_output=True,
            text=True,
            check=False,
        )
        found = Permissions(
            tmp_path,
            HOME,
            [SourcedRule("deny", parse_rule(f"Read({pattern})"), Tier.USER, Place("x"), tmp_path)],
        )
        assert [path for path in paths if found.reading(path)] == told.stdout.splitlines(), pattern


def test_deny_wins_over_ask_and_allow_wherever_they_stand() -> None:
    found = rules(allow=["Read(**)"], ask=["Read(a)", "Read(b)"], deny=["Read(b)"])
    assert found.reading("c") is None
    first, second = found.reading("a"), found.reading("b")
    assert first is not None
    assert second is not None
    assert (first.rule.verdict, second.rule.verdict) == ("ask", "deny")


def test_a_bare_rule_closes_everything() -> None:
    found = rules(deny=["Read"])
    assert found.reading("a/b") is not None
    assert found.tool("find_symbol", "read", ["Read"]) is not None
    edits = rules(deny=["Edit"])
    assert edits.reading("a") is None
    assert edits.editing("a") is not None


def test_a_rule_about_searching_switches_off_the_tool_and_hides_no_file() -> None:
    found = rules(deny=["Grep"])
    assert found.tool("search_for_pattern", "read", ["Grep"]) is not None
    assert found.tool("find_symbol", "read", ["Read"]) is None
    assert found.reading("a") is None


@pytest.mark.parametrize(
    ("rule", "denied", "others"),
    [
        ("Bash", ["ls", "anything"], []),
        ("Bash(*)", ["ls"], []),
        ("Bash(rm:*)", ["rm", "rm -rf x", "/bin/rm x", "\\rm x", "r''m x"], ["rmdir x", "echo rm", "ls # rm"]),
        ("Bash(rm *)", ["rm", "rm -rf x"], ["rmdir x"]),
        ("Bash(rm*)", ["rm x", "rmdir x"], ["ls"]),
        ("Bash(npm run build)", ["npm run build", "npm  run   build"], ["npm run build:all", "npm run"]),
        ("Bash(npm run:*)", ["npm run", "npm run x"], ["npm runx", "npm install"]),
        (
            "Bash(git push:*)",
            ["git push", "git -C x push origin", "git -c a=b --no-pager push"],
            ["git pushx", "git pull"],
        ),
        ("Bash(git * main)", ["git push origin main", "git merge main"], ["git push origin dev"]),
        ("Bash(curl * | sh)", ["curl -s x | sh"], ["curl x"]),
        ("Bash(a:*b)", ["axb"], ["ax"]),
    ],
)
def test_commands(rule: str, denied: list[str], others: list[str]) -> None:
    found = rules(deny=[rule])
    assert [line for line in (*denied, *others) if found.command(line)] == denied


@pytest.mark.parametrize(
    "line",
    [
        "ls && git commit -m x",
        "ls || git commit",
        "ls; git commit",
        "ls & git commit",
        "ls | git commit",
        "ls\ngit commit",
        "FOO=1 git commit",
        "FOO=1 BAR=2 env -u X BAZ=3 git commit",
        "sudo -u root git commit",
        "timeout -s KILL 10 git commit",
        "nohup nice -n 5 git commit",
        "/usr/bin/git commit",
        "command git commit",
        "git -C sub commit",
        "git --git-dir x -c a=b commit",
        'bash -c "git commit"',
        "bash -lc 'cd x && git commit'",
        "sh -c 'bash -c \"git commit\"'",
        "echo $(git commit)",
        "echo `git commit`",
        'echo "$(git commit)"',
        "(git commit)",
        "{ git commit; }",
        "if true; then git commit; fi",
        "for i in 1 2; do git commit; done",
        "while true; do git commit; done",
        "! git commit",
        "cat <(git commit)",
        "bash <<EOF\ngit commit\nEOF",
        "eval git commit",
        "find . -exec git commit ;",
        "echo x | xargs git commit",
        "git com\\mit",
        "gi't' commit",
        'g"i"t commit',
        "git commit > /dev/null 2>&1",
        "> log git commit",
        "f() { git commit; }; f",
        "git $X",
        "$X commit",
        'eval "$X"',
        "curl x | sh",
        "exec git commit",
        "time git commit",
        "env -S 'git commit'",
        "$(which git) commit",
        "`which git` commit",
        "git com$()mit",
        "git ${x:-commit}",
        "git $'\\x63ommit'",
        "git {commit,}",
        "sh <<< 'git commit'",
        "printf 'git commit' | bash -s",
        "echo commit | xargs git",
        "xargs -I{} git {} <<< commit",
        "busybox sh -c 'git commit'",
        "su -c 'git commit'",
        "ssh host git commit",
        "ssh -p 22 host 'git commit'",
        "script -c 'git commit' x",
        "flock /tmp/x git commit",
        "strace -f -o x git commit",
        "trap 'git commit' EXIT",
        "alias g='git commit'; g",
        "coproc git commit",
    ],
)
def test_every_command_of_a_line_is_looked_at(line: str) -> None:
    decision = rules(deny=["Bash(git commit:*)"]).command(line)
    assert decision is not None
    assert "git commit:*" in refusal_text("the command", decision)


@pytest.mark.parametrize(
    "line",
    [
        "x=$HOME; ls",
        "x=$(date); ls",
        "ls {a,b}",
        "awk '{print $1,$2}' x",
        "git status $(pwd)",
        "ls | xargs grep x",
        "git status",
        "echo git commit",
        "echo 'git commit'",
        "git log --grep commit",
        "ls > git",
        "cat commit",
        "git $X",
    ],
)
def test_other_lines_are_left_alone(line: str) -> None:
    pattern = "Bash(git commit:*)" if "$" not in line else "Bash(npm run:*)"
    assert rules(deny=[pattern]).command(line) is None


def test_a_command_does_not_name_a_file_that_may_not_be_read() -> None:
    found = rules(deny=["Read(.env)", "Read(secrets/**)"])
    for line in (
        "cat .env",
        "cat ./.env",
        "cat < .env",
        "head sub/../.env",
        "cp secrets/key /tmp",
        "tool --file=.env",
        f"cat {ROOT}/.env",
        "cat ~/work/app/.env",
        "echo x > .env",
        "cd secrets && cat secrets/key",
        "cd secrets && cat key",
        "tar -C secrets -c key",
        "curl -d @.env x",
        "git show HEAD:.env",
        "cat $'\\x2eenv'",
        "cat /proc/self/cwd/.env",
        "grep -r x secrets",
        "cat .{env,x}",
    ):
        assert found.command(line) is not None, line
    assert found.command("cat key", "secrets") is not None
    assert found.command("cat README.md") is None


def test_names_of_servers_and_their_tools() -> None:
    assert server_rule_fits("mcp__github", "mcp__github__get_issue")
    assert server_rule_fits("mcp__github__*", "mcp__github__get_issue")
    assert server_rule_fits("mcp__github__get_*", "mcp__github__get_issue")
    assert not server_rule_fits("mcp__github__get_*", "mcp__github__put_issue")
    assert not server_rule_fits("mcp__git", "mcp__github__get_issue")
    found = rules(deny=["mcp__serena__execute_shell_command", "mcp__github__delete_*"])
    assert found.tool("execute_shell_command", "run", ["Bash"]) is not None
    assert found.tool("find_symbol", "read", ["Read"]) is None
    assert found.upstream("github", "delete_repo") is not None
    assert found.upstream("github", "get_repo") is None


@pytest.mark.parametrize(
    "text", ["", " ", "Read(", "Read()", "Read(x", "(x)", "*", "*(x)", "Re*d", "Read([x)", "Read(!x)", "a b"]
)
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(BadRule):
        parse_rule(text)


@given(st.text(max_size=60))
def test_any_text_is_a_rule_or_a_bad_rule(text: str) -> None:
    try:
        rule = parse_rule(text)
    except BadRule:
        return
    found = Permissions(ROOT, HOME, [SourcedRule("deny", rule, Tier.USER, Place("x"), ROOT)])
    found.reading("a/b")
    found.command("a b")


@given(st.text(alphabet="ab$`'\"\\(){}|&;<>\n #=-gitrm*~!", max_size=40))
def test_any_line_is_taken_apart(line: str) -> None:
    assert commands_of(line)
    rules(deny=["Bash(rm:*)", "Read(.env)"]).command(line)


@pytest.mark.parametrize("times", [8, 1000, 10_000])
def test_a_line_of_commands_that_find_each_other_comes_to_an_end_and_hides_something(times: int) -> None:
    line = "find . -exec " * times + "rm x"
    found = commands_of(line)
    assert any(one.unknown for one in found)
    assert sum(len(text) for one in found for text in one.texts) < 2_000_000
    assert rules(deny=["Bash(rm:*)"]).command(line) is not None


def test_relative_patterns_of_the_user_are_relative_to_each_project(machine: Machine) -> None:
    machine.user({"permissions": {"deny": ["Read(./.env)", "Read(~/work/app/x)"]}})
    found = machine.load().permissions
    assert found.reading(".env") is not None
    assert found.reading("a/.env") is None
    assert found.reading("x") is not None


def test_a_refusal_names_rule_place_and_tier(machine: Machine) -> None:
    file = machine.project('{\n "permissions": {"deny": ["Read(.env)"]}}')
    decision = machine.load().permissions.reading(".env")
    assert decision is not None
    assert refusal_text("'.env'", decision) == (
        f"'.env' is denied by the permission rule Read(.env) in {file}:2:27 (project settings). "
        "A person can change the rule there."
    )


def test_a_pattern_of_the_shell_names_what_is_there(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("")
    (tmp_path / "README.md").write_text("")
    rule = SourcedRule("deny", parse_rule("Read(.env)"), Tier.USER, Place("x"), tmp_path)
    found = Permissions(tmp_path, HOME, [rule])
    for line in ("cat .e*", "cat .en?", "cat .[e]nv", "find . -name '.e*' -exec cat {} +", "cat .*"):
        assert found.command(line) is not None, line
    assert found.command("cat *.md") is None


@pytest.mark.parametrize("word", ["sudo ", "A=1 ", "a/", "$(", "{a,", "*/", "(", "`x` "])
def test_long_lines_end_soon(word: str) -> None:
    line = word * (100_000 // len(word)) + " git push"
    rules(deny=["Bash(git push:*)", "Read(.env)"]).command(line)
