"""A header is C unless something in it is not."""

import pytest

from serena_central.symbols.syntax.headers import identifier_of_header


@pytest.mark.parametrize(
    "source",
    [
        "class Shape;\n",
        "enum class Color { red };\n",
        "#pragma once\nnamespace shapes {\n}\n",
        "template <typename T> T first();\n",
        "using Name = const char *;\n",
        "struct A {\n public:\n  int a;\n};\n",
        "struct A {\n  virtual void f();\n};\n",
        "bool operator==(A a, A b);\n",
        "#include <vector>\n",
        "void f(const Shape &shape);\n",
        "struct A {\n  int size() const;\n};\n",
        "int f(std::size_t n);\n",
        "constexpr int n = 1;\n",
        "struct A : Base {\n  int size();\n};\n",
        "struct A final {\n  int size();\n};\n",
        "struct A {\n  int a;\n  A(int a);\n};\n",
        "struct A {\n  int a;\n  ~A();\n};\n",
        "struct A {\n  int size() { return 1; }\n};\n",
        "struct A {\n  static A first();\n};\n",
    ],
)
def test_a_header_with_words_of_cpp_is_cpp(source: str) -> None:
    assert identifier_of_header(source.encode()) == "cpp"


@pytest.mark.parametrize(
    "source",
    [
        '#ifdef __cplusplus\nextern "C" {\n#endif\nint f(void);\n',
        "/*\n * A class of devices with a private: and public part; using one.\n */\nstruct class { int private; };\n",
        "#include <stdio.h>\nint class(int new, int this);\n",
        "static inline int both(int a, int b) { return a & b; }\n",
        "void f(const struct shape *const shape);\n",
        "#define MASK(x) ((x) & 1)\n",
        "#define LOW ( \\\n\t~GENMASK(31, 4))\nstruct A {\n\tint a; /* in case\n\t static clocks */\n};\n",
        "struct A {\n\t/* like\n\t * void foo(void) {\n\t */\n\tint b : 3;\n\tint (*size)(struct A *a);\n};\n",
        "struct A *first(void);\nstatic struct A a = {\n\t.size = SIZE(1),\n};\n",
        "struct A final;\n",
    ],
)
def test_a_header_without_is_c(source: str) -> None:
    assert identifier_of_header(source.encode()) == "c"
