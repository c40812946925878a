"""What of Java counts as used although nothing refers to it, by its declaration as jdtls and the grammar draw it."""

import re

import pytest

from serena_central.analysis.keep_rules import KeepReason, LanguageFacts, kept
from serena_central.config.policies import ValidationPolicy
from serena_central.core.text import Range, Text
from serena_central.lsp.answers import DocumentSymbol, SymbolKind
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import flatten

KEEPER = """\
package zoo;

/** Keeps. {@link Row} @Bean public */
class Keeper extends Thread {
  private static final long serialVersionUID = 1L;
  private int count;

  private Keeper() {}

  private void readObject(ObjectInputStream in) {}

  /** Is not called. */
  @Deprecated
  @SuppressWarnings("@Bean")
  private void quiet(@Nullable Object o) {}

  @RequestMapping(
      path = "/",
      method = GET)
  private void handled() {}

  private @Inject Clock clock;

  void run() {}

  @Override
  void start() {}

  static void helper() {}

  public
      static <T> T split() {}

  @interface Marker {}

  private class Inner {}
}

@Entity
class Row {
  private int column;
  private static int total;

  private void helped() {}
}

enum Kind { CALM }

record Circle(double radius) {
  private static double unit;
}
"""

TYPES = {"Keeper": "/** Keeps", "Row": "@Entity", "Kind": "enum Kind", "Circle": "record Circle"}


def hit_of(holder: str, declaration: str, name: str, kind: SymbolKind) -> Hit:
    """A member of a type of `KEEPER`; its range begins where `declaration` does, and ends with the text."""
    text = Text(KEEPER)

    def symbol(begin: str, called: str, kind: SymbolKind, children: list[DocumentSymbol]) -> DocumentSymbol:
        start = KEEPER.index(begin)
        place = KEEPER.index(called, start)
        whole = Range(text.position(start), text.position(len(KEEPER)))
        return DocumentSymbol(
            called, kind, whole, Range(text.position(place), text.position(place + len(called))), children=children
        )

    kinds = {"Kind": SymbolKind.ENUM}
    inner = symbol(declaration, name, kind, [])
    file = flatten([symbol(TYPES[holder], holder, kinds.get(holder, SymbolKind.CLASS), [inner])])
    return Hit("zoo/Keeper.java", file, 1)


METHOD, FIELD, CONSTANT = SymbolKind.METHOD, SymbolKind.FIELD, SymbolKind.CONSTANT

CALLED = "libraries call it by its name"
LOOKED_UP = "libraries look it up by its name"
ALONE = "without its only constructor, a class has one without parameters, of the same access as the class"
GIVEN = "values() and valueOf() give enum constants that no code names"
COMPONENT = "it is a component of the record Circle, whose constructor and patterns take it by its position"
ENTITY = "its type has the annotation @Entity, by which fields may be read"


@pytest.mark.parametrize(
    ("holder", "declaration", "name", "kind", "reason"),
    [
        ("Keeper", "private static final", "serialVersionUID", CONSTANT, KeepReason(LOOKED_UP)),
        ("Keeper", "private void readObject", "readObject", METHOD, KeepReason(CALLED)),
        ("Keeper", "private int count", "count", FIELD, None),
        ("Keeper", "private Keeper()", "Keeper", SymbolKind.CONSTRUCTOR, KeepReason(ALONE, by_name=False)),
        ("Keeper", "/** Is not", "quiet", METHOD, None),
        ("Keeper", "@RequestMapping", "handled", METHOD, KeepReason("it has the annotation @RequestMapping")),
        ("Keeper", "private @Inject", "clock", FIELD, KeepReason("it has the annotation @Inject")),
        ("Keeper", "void run", "run", METHOD, KeepReason("it may be an override")),
        ("Keeper", "@Override", "start", METHOD, KeepReason("it overrides a method")),
        ("Keeper", "static void helper", "helper", METHOD, None),
        ("Keeper", "public\n", "split", METHOD, KeepReason("it is exported")),
        ("Keeper", "@interface", "Marker", SymbolKind.INTERFACE, None),
        ("Keeper", "private class", "Inner", SymbolKind.CLASS, None),
        ("Row", "private int column", "column", FIELD, KeepReason(ENTITY)),
        ("Row", "private static int total", "total", FIELD, None),
        ("Row", "private void helped", "helped", METHOD, None),
        ("Kind", "CALM", "CALM", SymbolKind.ENUM_MEMBER, KeepReason(GIVEN, by_name=False)),
        ("Circle", "double radius", "radius", FIELD, KeepReason(COMPONENT, by_name=False)),
        ("Circle", "private static double unit", "unit", FIELD, None),
    ],
)
def test_rules(holder: str, declaration: str, name: str, kind: SymbolKind, reason: KeepReason | None) -> None:
    java = LanguageFacts("java", library=False, in_interface=False)
    assert kept(hit_of(holder, declaration, name, kind), Text(KEEPER), java, ValidationPolicy()) == reason


ANIMAL = """\
class Animal {
  Animal() {}
  Animal(int age) {}
  Animal( /* of no age */ ) {}
}
"""
MADE = "serialization and libraries make objects by a constructor without parameters that no code names"


@pytest.mark.parametrize(
    ("declaration", "reason"),
    [
        ("Animal() ", KeepReason(MADE, by_name=False)),
        ("Animal(int age)", None),
        ("Animal( /*", KeepReason(MADE, by_name=False)),
    ],
)
def test_one_of_several_constructors_is_kept_if_it_takes_nothing(declaration: str, reason: KeepReason | None) -> None:
    """Reading an object back calls that of the first class that is not Serializable; JPA calls that of an entity."""
    text = Text(ANIMAL)

    def constructor(begin: str) -> DocumentSymbol:
        start = text.position(ANIMAL.index(begin))
        name = Range(start, text.position(ANIMAL.index(begin) + len("Animal")))
        whole = Range(start, text.position(ANIMAL.index("\n", ANIMAL.index(begin))))
        return DocumentSymbol("Animal", SymbolKind.CONSTRUCTOR, whole, name)

    others = [one for one in ("Animal() ", "Animal(int age)", "Animal( /*") if one != declaration]
    name = ANIMAL.index("Animal")
    holder = DocumentSymbol(
        "Animal",
        SymbolKind.CLASS,
        Range(text.position(0), text.position(len(ANIMAL))),
        Range(text.position(name), text.position(name + len("Animal"))),
        children=[constructor(one) for one in (declaration, *others)],
    )
    file = flatten([holder])
    line = constructor(declaration).range.start
    place = next(at for at in range(1, len(file.symbols)) if file.symbols[at].name_position == line)
    java = LanguageFacts("java", library=False, in_interface=False)
    assert kept(Hit("zoo/Animal.java", file, place), text, java, ValidationPolicy()) == reason


SHAPES = """\
public sealed abstract class Shape<T> {}
final class Circle<T extends Comparable<T>> extends zoo.Shape<T> implements Drawn {}
sealed interface Drawn permits Circle, Line {}
final class Line implements Drawn {}
sealed interface Answer {}
record Yes(int n) implements Answer {}
enum No implements java.io.Serializable, Answer { NO }
non-sealed class Open {}
class Door extends Open {}
"""


@pytest.mark.parametrize(
    ("name", "base"),
    [("Circle", "Shape"), ("Line", ""), ("Yes", ""), ("No", ""), ("Door", ""), ("Shape", ""), ("Answer", "")],
)
def test_the_only_subtype_of_a_sealed_type_that_names_none_is_kept(name: str, base: str) -> None:
    text = Text(SHAPES)
    types: list[DocumentSymbol] = []
    for line in SHAPES.splitlines():
        called = next(word for word in re.findall(r"\w+", line) if word[0].isupper())
        start, place = SHAPES.index(line), SHAPES.index(line) + line.index(called)
        whole = Range(text.position(start), text.position(start + len(line)))
        own = Range(text.position(place), text.position(place + len(called)))
        types.append(DocumentSymbol(called, SymbolKind.CLASS, whole, own))
    file = flatten(types)
    hit = Hit("zoo/Shapes.java", file, next(at for at, one in enumerate(file.symbols) if one.name == name))
    reason = f"it is the only subtype of {base}, which is sealed and must have one"
    expected = KeepReason(reason, by_name=False) if base else None
    java = LanguageFacts("java", library=False, in_interface=False)
    assert kept(hit, text, java, ValidationPolicy(exported="report")) == expected
