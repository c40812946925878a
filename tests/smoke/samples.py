"""The smallest file of each language that has something to list: its name or text says `hello`."""

from typing import NamedTuple


class Sample(NamedTuple):
    """`beside` are further files of the project, name → text."""

    file: str
    text: str
    beside: dict[str, str]


def _of(file: str, text: str, **beside: str) -> Sample:
    return Sample(file, text, {name.replace("_", "."): text for name, text in beside.items()})


ELM_PROJECT = """\
{"type": "application", "source-directories": ["."], "elm-version": "0.19.1",
 "dependencies": {"direct": {}, "indirect": {}}, "test-dependencies": {"direct": {}, "indirect": {}}}
"""

SAMPLES = {
    "angular": _of("a.component.html", "<h1>hello</h1>\n", angular_json="{}"),
    "ansible": _of("playbook.yml", "- hosts: hello\n  tasks: []\n"),
    "astro": _of("a.astro", "---\nconst hello = 1;\n---\n<h1>{hello}</h1>\n"),
    "bash": _of("a.sh", "hello() { echo 1; }\n"),
    "cmake": _of("CMakeLists.txt", "project(hello)\n"),
    "compose": _of("compose.yaml", "services:\n  hello:\n    image: x\n"),
    "cpp": _of("a.cpp", "class Hello {};\n"),
    "css": _of("a.scss", "$hello: 1px;\n.hello { color: red; }\n"),
    "deno": _of("a.ts", "export class Hello {}\n", deno_json="{}"),
    "dockerfile": _of("Dockerfile", "FROM scratch AS hello\n"),
    "elm": _of("Main.elm", "module Main exposing (hello)\n\n\nhello : Int\nhello =\n    1\n", elm_json=ELM_PROJECT),
    "fortran": _of("a.f90", "module hello\nend module hello\n"),
    "html": _of("a.html", '<h1 id="hello">x</h1>\n'),
    "java": _of("Hello.java", "class Hello {}\n"),
    "json": _of("a.json", '{"hello": 1}\n'),
    "julia": _of("a.jl", "function hello()\nend\n"),
    "make": _of("Makefile", "hello:\n\techo 1\n"),
    "php": _of("a.php", "<?php\nclass Hello {}\n"),
    "prisma": _of("schema.prisma", "model Hello {\n  id Int @id\n}\n"),
    "proto": _of("a.proto", 'syntax = "proto3";\nmessage Hello {}\n'),
    "python": _of("a.py", "class Hello:\n    pass\n"),
    "rescript": _of("a.res", "let hello = 1\n"),
    "robotframework": _of("a.robot", "*** Test Cases ***\nHello\n    Log    1\n"),
    "solidity": _of("a.sol", "contract Hello {}\n"),
    "sql": _of("a.sql", "SELECT 1 AS hello;\n"),
    "svelte": _of("a.svelte", "<script>\nconst hello = 1;\n</script>\n"),
    "toml": _of("a.toml", "hello = 1\n"),
    "typescript": _of("a.ts", "export class Hello {}\n"),
    "vim": _of("a.vim", "function! Hello()\nendfunction\n"),
    "yaml": _of("a.yaml", "hello: 1\n"),
}
