"""Which words of components name a property as well as a value."""

import pytest

from serena_central.projects.refactoring.component_shorthands import LOOKED_BACK, may_name_both

BOTH = [
    ('<template><Row v-bind="{ @name }" /></template>', True),
    ('<template><Row :style="{ a: 1, @name }" /></template>', True),
    ("<template>{{ shown({ @name }) }}</template>", True),
    ("<template><Row :@name /><Row a v-bind:@name><Row v-on:click='() => go()' :@name.prop></template>", True),
    ("<Row {@name} />", False),
    ("<Row on:done={() => go()} {@name} />", False),
    ("{shown({ a, @name, b })}", False),
    ("{shown({ @name })} {shown(1, { $@name })}", False),
    ("{#each all as { @name }}{#await one then { @name }}{:catch { @name }}", False),
    ("<Row a={{ @name }} {...{ @name }} b='c' {@name} />", False),
    ("<p class:@name style:@name|important><input bind:@name /></p>", False),
    ("<script>\nconst one = { @name };\n</script>", False),
    (f"{{ a, {'x' * LOOKED_BACK}, @name }}", False),
]

ONE = [
    ("<template>{{ @name }} {{ f(a, @name) }}</template>", True),
    ('<script setup>\nimport { a, @name } from "./shop";\n</script>', True),
    ("<template><p :title=\"f(a, @name, b)\" :list='[@name]' /></template>", True),
    ("<template><Row :a='@name' :@name='@name' v-model:@name='@name' /></template>", True),
    ("<script>\nconst a = b < 1 ? @name :c;\nconst one :@name = 1;\n</script>", True),
    ("<script>\nimport type { @name } from './shop';\n</script>", False),
    ("<p>{@name} and {a.@name}, {@name}</p>", False),
    ('<p title={@name} class="{@name}">{f([a, @name])}</p>', False),
    ("<p class='a {@name}' title={b} id=\"c-{@name} {@name}\"><a href=/x/{@name}>known as {@name}</a></p>", False),
    ("<p on:done={() => go()}>{@name} {$@name}</p>", False),
    ("<p use:@name class:@name={@name} style:@name|important={@name}></p>", False),
    ("---\nconst a = 1;\n---\n<p>{@name}</p>", False),
]


@pytest.mark.parametrize(("text", "is_vue", "both"), [*((*one, True) for one in BOTH), *((*one, False) for one in ONE)])
def test_a_word_alone_in_braces_may_name_both(text: str, is_vue: bool, both: bool) -> None:
    parts = text.split("@")
    for number in range(1, len(parts)):
        start = len("".join(parts[:number]))
        assert may_name_both("".join(parts), start, start + len("name"), is_vue=is_vue) is both, number
