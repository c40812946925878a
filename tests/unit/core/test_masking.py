"""What looks like a secret is masked, and code stays readable."""

import pytest

from serena_central.core import masking
from serena_central.core.masking import (
    MASK,
    is_secret_file,
    is_secret_name,
    masked,
    masked_output,
    masked_secret,
    masked_value,
    masked_words,
    secrets_in,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password=hunter22", f"password={MASK}"),
        ("password: hunter22", f"password: {MASK}"),
        ("db_password: 'hunter22'", f"db_password: '{MASK}'"),
        ('dbPassword := "hunter22"', f'dbPassword := "{MASK}"'),
        ('{"api_key": "abc-def-1"}', f'{{"api_key": "{MASK}"}}'),
        (r'"{\"password\": \"hunter22\"}"', rf'"{{\"password\": \"{MASK}\"}}"'),
        ("export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", f"export AWS_SECRET_ACCESS_KEY={MASK}"),
        ("Authorization: Bearer abcdef1234567890abc", f"Authorization: {MASK}"),
        ("curl -H 'X-Auth-Token: abc123456'", f"curl -H 'X-Auth-Token: {MASK}'"),
        ("see postgres://me:hunter22@db/shop", f"see postgres://{MASK}@db/shop"),
        ("ghp_abcdefghijklmnopqrstuvwxyz012345 there", f"{MASK} there"),
        ("a AKIAABCDEFGHIJKLMNOP b", f"a {MASK} b"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", MASK),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nrest", f"{MASK}\nrest"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE cut", MASK),
        ("run --token Zq7xHv2Lk9 -v", f"run --token {MASK} -v"),
        ("run --api-key 'two words' -v", f"run --api-key '{MASK}' -v"),
        ('["--authToken", "Zq7xHv2Lk9"]', f'["--authToken", "{MASK}"]'),
        ("curl -u me:Zq7xHv2Lk9 https://x", f"curl -u me:{MASK} https://x"),
        ('curl -H "Authorization: token Zq7xHv2Lk9" x', f'curl -H "Authorization: {MASK}" x'),
        ("STRIPE_KEY=Zq7xHv2Lk9 run", f"STRIPE_KEY={MASK} run"),
        ("VAULT_TOKEN=hvs.Zq7xHv2Lk9 run", f"VAULT_TOKEN={MASK} run"),
        ("run --token=abc.def", f"run --token={MASK}"),
        ("GITHUB_PAT=Zq7xHv2Lk9", f"GITHUB_PAT={MASK}"),
        ("PASSWORD='a b; c' run", f"PASSWORD='{MASK}' run"),
        (r'PASSWORD="a\"b c" run', f'PASSWORD="{MASK}" run'),
        ('X_HEADERS="a=Zq7xHv2Lk9,b=c"', f'X_HEADERS="{MASK}"'),
        ("https://h/x?key=Zq7xHv2Lk9&b=1&sig=Zq7x", f"https://h/x?key={MASK}&b=1&sig={MASK}"),
        ("https://0123456789abcdef0@sentry.io/1", f"https://{MASK}@sentry.io/1"),
        ("https://me:a@b@host/x", f"https://{MASK}@host/x"),
        ("https://h.com/s/T0/aB3aB3aB3aB3aB3aB3aB3/mcp", f"https://h.com/s/T0/{MASK}/mcp"),
        ("{authToken: 'Zq7xHv2Lk9'}", f"{{authToken: '{MASK}'}}"),
        (f"token=${{TOKEN:-{'Zq7xHv2Lk9' * 90}}}", f"token={MASK}}}"),
    ],
)
def test_a_secret_is_masked(text: str, shown: str) -> None:
    assert masked(text) == shown
    assert masked(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "token = parse(text)",
        "self.token: str = other()",
        "author: John Smith",
        "compass: north-west",
        "max_tokens: 1000",
        "def secret(self) -> None: ...",
        "https://example.com/a:b",
        "ssh://git@example.com/a.git",
        "token=self.token",
        "token: Optional[str]\n    metrics: Metrics",
        "docker run -u 1000:1000 x",
        "rsync -u host:/a b",
        "docker login --password-stdin",
        "API_KEY=$KEY run --token $TOKEN -H 'Authorization: Bearer $TOKEN'",
        "PASSWORD=$(op read op://x) run",
        '"Authorization": "Bearer <token>"',
        "https://h.com/blob/0123456789abcdef0123456789abcdef01234567/a.py",
        "Cart/total in src/keyboard.py",
    ],
)
def test_code_stays_readable(text: str) -> None:
    assert masked(text) == text


def test_data_is_masked_by_its_names_and_texts() -> None:
    given = {"env": {"DB_PASS": "x", "USER": "me"}, "list": ["token=abcdefgh1", 3, None], "apiKey": ["a"], "n": 1.5}
    assert masked_value(given) == {
        "env": {"DB_PASS": MASK, "USER": "me"},
        "list": [f"token={MASK}", 3, None],
        "apiKey": MASK,
        "n": 1.5,
    }


def test_a_command_line_is_masked_by_its_options_and_keeps_references_to_variables() -> None:
    given = [
        "run",
        "--api-key",
        "abc",
        "--token=abcdef",
        "--password",
        "${PASS}",
        "--auth",
        "--url=x?token=${TOKEN}&a=b",
    ]
    assert masked_words(given) == [*given[:2], MASK, f"--token={MASK}", *given[4:]]
    assert masked("Authorization: Bearer ${TOKEN}") == "Authorization: Bearer ${TOKEN}"
    assert masked("${MY_TOKEN:-none}") == "${MY_TOKEN:-none}"
    assert masked("password: -hunter22") == f"password: {MASK}"
    assert masked("token=-https://abcdef") == f"token={MASK}"
    assert masked(f"${{TOKEN:-{'abc123' * 4}}}") == f"${{TOKEN:{MASK}}}"
    assert masked("${DSN:-db://localhost/shop}") == "${DSN:-db://localhost/shop}"
    assert masked("${DSN:-db://me:abc@x/?token=abcd}") == f"${{DSN:-db://{MASK}@x/?token={MASK}}}"


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("${KEY}", "${KEY}"),
        ("${KEY:-none}", "${KEY:-none}"),
        ("${KEY:-0123456789abcdef01}", f"${{KEY:-{MASK}}}"),
        ("Bearer ${KEY:-0123456789abcdef01}", f"Bearer ${{KEY:-{MASK}}}"),
        ("hunter22${KEY}", MASK),
    ],
)
def test_of_a_secret_that_is_a_variable_its_default_alone_is_masked(word: str, shown: str) -> None:
    assert masked_words(["--api-key", word]) == ["--api-key", shown]


def test_a_secret_that_is_masked_in_a_command_line_can_be_found_elsewhere() -> None:
    words = ["run", "--token=abc.def", "-u", "me:pw", "--key", "x", "https://a:b@h/?sig=12345"]
    assert secrets_in(words) == ["abc.def", "pw", "a:b", "12345"]
    assert secrets_in(["run", "--token", "${TOKEN}"]) == []


def test_what_a_command_has_to_print_is_masked_where_its_output_is_a_secret() -> None:
    assert masked_output("echo abc | tr a b") == f"echo {MASK} | tr a b"
    assert masked_output("echo $TOKEN") == "echo $TOKEN"
    assert masked_output("get-key --of me") == "get-key --of me"


def test_names_of_secrets_and_of_files_that_hold_them() -> None:
    assert all(map(is_secret_name, ["password", "dbPassword", "DB_PASS", "api-key", "authToken", "AUTH"]))
    assert not any(map(is_secret_name, ["name_path", "key", "compass", "author", "path"]))
    assert all(map(is_secret_file, [".env", "a/.env.local", "x/id_rsa", "a.pem", "secrets.yml", "aws/credentials"]))
    assert not any(map(is_secret_file, ["src/key.py", "environment.py", "secrets/model.py"]))


def test_hostile_texts_are_masked_in_linear_time() -> None:
    for text in (
        "token" * 50_000,
        "a." * 100_000 + "token=",
        "://" + "a" * 200_000,
        "://" + "/aB1" * 50_000,
        "-----BEGIN " + "A" * 200_000,
        "token='" * 50_000,
        "-token " * 50_000,
        "token=" + "${A}" * 50_000,
        "token=" + "${A:-" * 40_000,
        "echo" + " " * 200_000,
    ):
        masked_output(text)
        masked_secret(text)


def test_what_calls_and_answers_hold_as_a_rule_needs_no_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call is masked beside the event loop, on the same interpreter."""
    for pattern in ("_ASSIGNED", "_OPTION", "_KNOWN", "_LOGIN", "_QUERY"):
        monkeypatch.setattr(masking, pattern, None)
    text = '{"name_path": "Cart/total", "relative_path": "shop/cart.py", "include_body": true, "notes": []}'
    assert masked(text) == text
