"""Searches as agents write them, executed both ways: as the shell does, and by the calls that the hook hands over on a
real server. Those calls find every definition that the search finds; where they would not, the search runs.
"""

import json
import re
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

from serena_central.core.places import Places
from tests.integration.test_hooks import run_hook, use, verdict_of
from tests.support.child import PATIENCE_S, Child, serving_child
from tests.support.servers import with_core_servers

pytestmark = pytest.mark.anyio

CONFIGURATION = """\
name: suite
type: super-repo
default_module: shop
modules:
  shop: {path: modules/shop, languages: [python]}
  api: {path: modules/api, languages: [go]}
  web: {path: modules/web, languages: [typescript]}
  engine: {path: libs/engine, languages: [rust]}
"""

FILES = {
    "suite/.serena/project.yml": CONFIGURATION,
    "suite/.gitignore": "build/\n",
    "suite/.git/HEAD": "ref: refs/heads/main\n",
    "suite/README.md": "# Suite\n\nclass Cart is in the shop.\n",
    "suite/scripts/deploy.py": (
        "class Deployer:\n    def run_all(self) -> None: ...\n\n\ndef deploy_suite() -> None: ...\n"
    ),
    "suite/modules/shop/src/cart.py": (
        "class Cart:\n    def total_price(self) -> int:\n        return 0  # free today\n\n\n"
        "class CartItem:\n    pass\n\n\ndef make_cart() -> Cart:\n    return Cart()\n"
    ),
    "suite/modules/shop/src/prices.py": (
        "from cart import Cart\n\n\ndef parse_price(text: str) -> int:\n    return int(text)\n"
    ),
    "suite/modules/shop/tests/test_cart.py": "def test_cart_total() -> None: ...\n\n\ndef test_price() -> None: ...\n",
    "suite/modules/shop/build/generated.py": "class CartBuild: ...\n",
    "suite/modules/api/go.mod": "module example.com/api\n\ngo 1.21\n",
    "suite/modules/api/server.go": (
        "package api\n\ntype Server struct{}\n\nfunc (s *Server) Start() int { return 1 }\n\n"
        "func (s *Server) StartAll() int { return s.Start() }\n\nfunc NewServer() *Server { return &Server{} }\n"
    ),
    "suite/modules/api/pkg/price.go": (
        "package pkg\n\ntype Price struct{ Cents int }\n\nfunc ParsePrice() Price { return Price{} }\n"
    ),
    "suite/modules/web/package.json": '{"name": "web"}',
    "suite/modules/web/tsconfig.json": '{"include": ["src"]}',
    "suite/modules/web/src/user.ts": (
        "export interface UserProps {\n  name: string;\n}\n\nexport class UserService {\n  getUser(): string {\n"
        "    return '';\n  }\n}\n\nexport function renderUser(): string {\n  return new UserService().getUser();\n}\n\n"
        "export const formatPrice = (cents: number) => `${cents}`;\n"
    ),
    "suite/libs/engine/Cargo.toml": '[package]\nname = "engine"\nversion = "1.0.0"\nedition = "2021"\n',
    "suite/libs/engine/src/lib.rs": (
        "pub struct Engine;\n\nimpl Engine {\n    pub fn new() -> Engine {\n        Engine\n    }\n\n"
        "    pub fn start_engine(&self) {}\n}\n\npub fn price_of() -> i32 {\n    1\n}\n"
    ),
    "plain/.git/HEAD": "ref: refs/heads/main\n",
    "plain/.gitignore": "out/\n",
    "plain/src/orders.py": "class Order:\n    def save(self) -> None: ...\n\n\nclass OrderLine:\n    pass\n",
    "plain/src/orders.f90": "subroutine Order()\nend subroutine\n",
    "plain/tools/order_tool.py": "def OrderTool() -> None: ...\n",
    "plain/out/built.py": "class OrderBuilt: ...\n",
    "nested/.git/HEAD": "ref: refs/heads/main\n",
    "nested/app.py": "class Widget: ...\n",
    "nested/parts/other/.git/HEAD": "ref: refs/heads/main\n",
    "nested/parts/other/part.py": "class WidgetPart: ...\n",
}

MODULES = {"shop": "modules/shop", "api": "modules/api", "web": "modules/web", "engine": "libs/engine", "suite": ""}


class Line(NamedTuple):
    """A command line, the folder that it is run in, and how many definitions its search finds. `grep`: the same search
    for machines without rg."""

    line: str
    folder: str = "suite"
    finds: int = 1
    grep: str = ""


STOPPED = [
    Line("grep -rn 'class Cart' .", finds=2),
    Line("grep -rn 'class Cart\\b' ."),
    Line("grep -rnw 'class Cart' --include=*.py modules"),
    Line("grep -rn 'class CartItem' modules/"),
    Line("grep -rniE 'class\\s+cart' --include='*.py' .", finds=2),
    Line("grep -rnE 'class (Cart|Deployer)' .", finds=3),
    Line("grep -rn 'class Deployer' --include=*.py ."),
    Line("grep -rn 'def deploy_suite' ."),
    Line("grep -rnE 'def (make_cart|parse_price|deploy_suite|test_price)' .", finds=4),
    Line("grep -rn 'def test_' modules", finds=2),
    Line("grep -rn 'total_price' ."),
    Line("grep -rn 'make_cart(' --include=*.py ."),
    Line("grep -rn 'func (s \\*Server) Start' .", finds=2),
    Line("grep -rn 'func (s \\*Server) Start(' ."),
    Line("grep -rnE 'func \\(.*\\) Start\\(' --include=*.go ."),
    Line("grep -rn 'type Server struct' modules"),
    Line("grep -rn 'NewServer' ."),
    Line("grep -rn 'ParsePrice\\|formatPrice' .", finds=2),
    Line("grep -rn '\\<getUser\\>' modules", finds=0),
    Line("grep -rnE 'interface[[:space:]]+UserProps' ."),
    Line("grep -rn 'export function renderUser' modules/web"),
    Line("grep -rn 'const formatPrice' ."),
    Line("grep -rn 'pub fn new' libs"),
    Line("grep -rn 'pub struct Engine' ."),
    Line("grep -rn 'fn start_engine' libs/engine/src"),
    Line("grep -n 'def total_price' modules/shop/src/cart.py"),
    Line("grep -rn 'class Cart' modules/shop/src modules/web/src", finds=2),
    Line("grep -rn 'class UserService' ../web/src", folder="suite/modules/shop"),
    Line("cd modules && grep -rn 'class Cart' shop api", finds=2),
    Line("bash -lc \"grep -rn 'class CartItem' modules\""),
    Line("grep -rn 'class Cart' . | grep -v Item | head -5", finds=1),
    Line("find . -name '*.go'", finds=2),
    Line("find modules -name '*.py' -o -name '*.ts'", finds=4),
    Line("find . -iname 'CART*.py'"),
    Line("find . -name 'deploy*.py'"),
    Line("find modules -name '*.py' | xargs grep -n 'class CartItem'"),
    Line("find . -name '*.go' -exec grep -Hn 'type Price' {} +"),
    Line("rg -n 'class Cart'", finds=2, grep="grep -rn 'class Cart' --exclude-dir=build ."),
    Line("rg -n -t go 'func New'", grep="grep -rn 'func New' --include=*.go ."),
    Line("rg -nS 'class cart' -g '*.py'", finds=2, grep="grep -rni 'class cart' --include=*.py --exclude-dir=build ."),
    Line("rg --files -g '*.rs' -g '*.go'", finds=3, grep="find . -name '*.rs' -o -name '*.go'"),
    Line("grep -rn 'class Order' src", folder="plain", finds=2),
    Line("grep -rnE 'class Order|def OrderTool' .", folder="plain", finds=3),
    Line("grep -rn 'Order' --include=*.py src tools", folder="plain", finds=3),
    Line("find . -name 'order*.py'", folder="plain", finds=2),
]
"""Each is denied."""

RUN = [
    Line("grep -rn 'class Cart' modules/shop/build"),
    Line("grep -rn 'class Deployer' scripts"),
    Line("grep -rn 'class Cart' modules /usr/lib/python3"),
    Line("grep -rn 'class Order' out", folder="plain"),
    Line("grep -rn 'class Widget' .", folder="nested"),
    Line("grep -rn 'class Widget' parts/other", folder="nested"),
    Line("rg -uu 'class Cart'"),
    Line("rg -U 'class Cart.*pass'"),
    Line("grep -rn 'class Cart' . ; grep -n TODO README.md"),
    Line("grep -rnP 'class \\p{Lu}art' ."),
]
"""A call would find less than these: they run."""

DEFINITION = re.compile(
    r"^\s*(?:(?:export|default|pub|async)\s+)*"
    r"(?:class|def|func(?:\s*\([^)]*\))?|fn|function|interface|struct|type|const|trait|enum)\s+(?P<name>\w+)"
)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work").resolve()
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
async def child(tmp_path_factory: pytest.TempPathFactory, work: Path) -> AsyncGenerator[Child]:
    folder = tmp_path_factory.mktemp("serving")
    with_core_servers(Places(folder / "home"))
    async with serving_child(folder) as serving:
        for project in ("suite", "plain", "nested"):
            await serving.call("find_file", {"project": str(work / project), "file_mask": "*"})
        yield serving


def hinted(reason: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls that stand in for the search: those before what is only of use, too."""
    calls: list[tuple[str, dict[str, Any]]] = []
    for line in reason.splitlines()[1:]:
        found = re.fullmatch(r"(\w+)\((\{.*\})\)", line)
        if found is None:
            break
        calls.append((found[1], json.loads(found[2])))
    assert calls, reason
    return calls


async def searched(work: Path, line: Line) -> set[tuple[str, str]]:
    """What the shell finds: files, each with the name of a definition, or with none where files are searched."""
    text = line.grep if line.grep and line.line.startswith("rg") and shutil.which("rg") is None else line.line
    folder = work / line.folder
    with anyio.fail_after(PATIENCE_S):
        ended = await anyio.run_process(["bash", "-c", text], cwd=folder, check=False)
    found: set[tuple[str, str]] = set()
    base = folder / "modules" if text.startswith("cd modules") else folder
    for row in ended.stdout.decode().splitlines():
        path, _, rest = row.partition(":")
        if path.isdecimal():
            path, rest = next(word for word in text.split() if word.endswith(".py")), f"{path}:{rest}"
        place = (base / path).resolve().relative_to(work).as_posix()
        if "/build/" in place or "/out/" in place or place.endswith(".md"):
            continue  # ignored by git, which the hint says; or prose
        if not rest:
            found.add((place, ""))
        elif definition := DEFINITION.match(rest.partition(":")[2]):
            found.add((place, definition["name"]))
    return found


async def called(child: Child, work: Path, tool: str, arguments: dict[str, Any]) -> set[tuple[str, str]]:
    """What one call finds, in the same form."""
    answer = await child.call(tool, arguments)
    root = Path(arguments["project"])
    groups = {root: answer}
    if isinstance(answer, dict) and set(answer) <= set(MODULES) and root.name == "suite":
        groups = {root / MODULES[label]: part for label, part in answer.items()}
    found: set[tuple[str, str]] = set()
    for base, part in groups.items():
        below = base.relative_to(work).as_posix()
        if tool == "find_symbol":
            found |= {(f"{below}/{one['relative_path']}", one["name_path"].rpartition("/")[2]) for one in part}
        elif tool == "find_file":
            found |= {(f"{below}/{path}", "") for path in part["files"]}
        else:
            lines = [(path, line.partition(":")[2]) for path, lines in part.items() for line in lines]
            found |= {(f"{below}/{path}", one["name"]) for path, text in lines if (one := DEFINITION.match(text))}
    return found


@pytest.mark.parametrize("line", STOPPED, ids=lambda line: line.line)
async def test_the_hinted_calls_find_every_definition_that_the_search_finds(
    child: Child, work: Path, line: Line
) -> None:
    said = use(work / line.folder, "Bash", {"command": line.line}, session=line.line)
    verdict, reason = verdict_of(await run_hook(child.folder, said, "enforce"))
    assert verdict == "deny"
    wanted = await searched(work, line)
    found: set[tuple[str, str]] = set()
    for tool, arguments in hinted(reason):
        found |= await called(child, work, tool, arguments)
    assert wanted <= found, reason
    assert len(wanted) == line.finds, "the line finds something else than it is here for"


@pytest.mark.parametrize("line", RUN, ids=lambda line: line.line)
async def test_a_search_that_finds_more_than_the_tools_is_run(child: Child, work: Path, line: Line) -> None:
    said = use(work / line.folder, "Bash", {"command": line.line}, session=line.line)
    ended = await run_hook(child.folder, said, "enforce")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
