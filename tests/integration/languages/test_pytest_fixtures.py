"""Fixtures of pytest are used by the names of parameters, of which a language server knows nothing."""

import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from tests.support.languages import Asker, asker

pytestmark = pytest.mark.anyio

CONFTEST = """\
import pytest


@pytest.fixture(
    scope="session",
)
def customer_db():
    return {"ada": 1}


@pytest.fixture
def customers(customer_db: dict):
    return sorted(customer_db)


def helper(customers):
    return customers


@pytest.fixture
def shared():
    return 1


@pytest.fixture(name="cart")
def make_cart():
    return []


@pytest.fixture(params=[dict(name="bob")])
def account():
    return 1


@pytest.fixture
def price():
    return 1
"""

CUSTOMERS = """\
import pytest


def test_names(customers, customer_db):
    assert customers == ["ada"]
    customer_db = dict(customer_db)
    assert customer_db["ada"] == 1


class TestShop:
    async def test_later(self, *, customer_db, customers="default"):
        assert customer_db and customers


@pytest.mark.parametrize("customers", [1])
def test_direct(customers):
    assert customers == 1


def not_collected(customer_db):
    return lambda customer_db: customer_db


def test_shared(shared):
    assert shared


class ShopTests:
    def test_inherited(self, customer_db):
        assert customer_db


def test_account(account):
    assert account == 1


def price_of(count):
    def test_price(price):
        assert price == count

    return test_price


test_price_of_one = price_of(1)


def test_of_a_function():
    def test_inner(customer_db):
        return customer_db

    assert test_inner(customer_db=1)
"""

OVERRIDDEN = """\
from pytest import fixture


@fixture
def shared(shared):
    return shared + 1


def test_shared(shared):
    assert shared == 2


@fixture(name="price")
def make_price():
    return 2


def test_overridden_price(price):
    assert price == 2
"""

HEALTH = """\
def test_connection(customer_db):
    return customer_db is not None


print(test_connection(customer_db=None))
"""


@pytest.fixture
async def tested(tmp_path: Path) -> AsyncGenerator[Asker]:
    root = tmp_path / "shop"
    (root / "over").mkdir(parents=True)
    files = {
        "conftest.py": CONFTEST,
        "test_customers.py": CUSTOMERS,
        "over/test_shared.py": OVERRIDDEN,
        "health.py": HEALTH,
        "pyproject.toml": "[project]\nname = 'shop'\n",
    }
    for name, text in files.items():
        (root / name).write_text(text)
    async with asker(tmp_path, root) as ask:
        yield ask


async def test_parameters_that_pytest_fills_are_references(tested: Asker) -> None:
    assert await tested.uses("customer_db", "conftest.py") == [
        "conftest.py:11:14 customers",
        "conftest.py:12:18 customers",
        "test_customers.py:3:26 test_names",
        "test_customers.py:5:4 test_names",
        "test_customers.py:5:23 test_names",
        "test_customers.py:6:11 test_names",
        "test_customers.py:10:34 TestShop/test_later",
        "test_customers.py:11:15 TestShop/test_later",
    ]


async def test_a_renamed_fixture_is_renamed_where_tests_take_it(tested: Asker) -> None:
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not later"]
    await anyio.run_process(run, cwd=tested.root)
    result = await tested.result("rename_symbol", name_path="customer_db", new_name="client_db")
    assert not result["isError"], result
    await anyio.run_process(run, cwd=tested.root)
    text = (tested.root / "test_customers.py").read_text()
    assert "async def test_later(self, *, client_db, customers" in text
    assert "    def test_inner(customer_db):" in text
    assert "def not_collected(customer_db):\n    return lambda customer_db: customer_db\n" in text
    assert (tested.root / "health.py").read_text() == HEALTH


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("customers", "test_customers.py:15 in test_direct"),
        ("shared", "over"),
        ("customer_db", "health.py:0 in test_connection"),
        ("customer_db", "test_customers.py:28 in ShopTests/test_inherited"),
        ("price", "in price_of/test_price"),
        ("price", "in test_overridden_price"),
    ],
)
async def test_parameters_that_may_be_filled_otherwise_are_possible_references(
    tested: Asker, name: str, place: str
) -> None:
    """By a parametrization, by another fixture that has or is given the name, by whoever calls a function of the
    program, or if tests derive from a class that pytest does not collect, or a function returns a test."""
    result = await tested.result("find_referencing_symbols", name_path=name, relative_path="conftest.py")
    assert "Possible references" in result["content"][1]["text"]
    assert place in result["content"][1]["text"]


async def test_a_fixture_that_tests_take_is_not_deleted(tested: Asker) -> None:
    refused = await tested.result("safe_delete_symbol", name_path="customer_db")
    assert refused["isError"]
    assert "It is referenced in conftest.py:11 in customers" in refused["content"][0]["text"]


async def test_a_fixture_of_another_name_is_said_to_have_it(tested: Asker) -> None:
    result = await tested.result("find_referencing_symbols", name_path="make_cart")
    assert "pytest gives what make_cart returns as 'cart'" in result["content"][1]["text"]


async def test_a_name_in_the_values_of_a_fixture_is_not_its_own(tested: Asker) -> None:
    assert await tested.uses("account", "conftest.py") == [
        "test_customers.py:32:17 test_account",
        "test_customers.py:33:11 test_account",
    ]
