"""A person looks at the references within a project: has it drawn, moves in it, unfolds it, follows an edge."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.support.central import RunningCentral, running_central
from tests.support.example_project import CART, ORDERS

pytestmark = pytest.mark.anyio

MIDDLE = """path => {
    const at = path.getPointAtLength(path.getTotalLength() / 2).matrixTransform(path.getScreenCTM());
    return [at.x, at.y];
}"""


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    root = tmp_path / "shop"
    for path, text in {"cart.py": CART, **ORDERS}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    async with running_central(tmp_path, {"projects": [str(root)]}, patience_s=120) as running:
        yield running


async def drawn(page: Page) -> None:
    """From the overview to the drawing of the only project."""
    await page.get_by_role("link", name="Projects", exact=True).click()
    await page.get_by_role("link", name="shop", exact=True).click()
    await page.get_by_role("link", name="Graph and findings").click()
    await page.get_by_role("button", name="Analyze: graph").click()
    await expect(page.locator(".drawing .node")).to_have_count(5, timeout=60_000)


async def test_a_graph_is_drawn_made_larger_folded_and_followed_to_the_references(
    central: RunningCentral, person: OpenPage
) -> None:
    async with person(central) as page:
        await drawn(page)
        drawing = page.locator(".drawing")
        before = await drawing.bounding_box()
        await page.get_by_role("button", name="Larger").click()
        larger = await drawing.bounding_box()
        assert before
        assert larger
        assert larger["width"] > before["width"] * 1.2
        await page.locator("#graph").focus()
        await page.keyboard.press("0")
        assert await drawing.bounding_box() == before
        await page.keyboard.press("-")
        smaller = await drawing.bounding_box()
        assert smaller
        assert smaller["width"] < before["width"] * 0.85
        await page.get_by_role("button", name="Reset").click()

        await page.locator(".folders").get_by_role("link", name="orders").click()
        await expect(page.locator(".drawing .node")).to_have_count(3)
        await page.get_by_role("link", name="Unfold orders").click()
        await expect(page.locator(".drawing .node")).to_have_count(5)
        await page.go_back()
        await expect(page.locator(".drawing .node")).to_have_count(3)

        edge = page.locator(".lines path").first
        x, y = await edge.evaluate(MIDDLE)
        await page.mouse.click(x, y)
        await page.wait_for_url("**/projects/one/references?**")
        await expect(page.locator("main")).to_contain_text("from orders.order import Order")


async def test_what_a_cycle_and_a_node_are_made_of_is_found_by_the_keyboard(
    central: RunningCentral, person: OpenPage
) -> None:
    async with person(central) as page:
        await drawn(page)
        cycles = page.locator("#cycles")
        await expect(cycles).to_contain_text("orders/customer.py ↔ orders/order.py")
        await expect(page.locator(".drawing .node.c1")).to_have_count(2)
        await cycles.get_by_role("link", name="orders/customer.py → orders/order.py").press("Enter")
        await expect(page.locator(".references tbody tr")).to_have_count(1)
        await page.go_back()
        await page.locator(".drawing").get_by_role("link", name="cart.py").press("Enter")
        await page.get_by_role("link", name="orders/order.py").press("Enter")
        await expect(page.locator("main")).to_contain_text("from cart import Cart")


async def test_a_graph_is_there_without_a_script(central: RunningCentral, person: OpenPage) -> None:
    async with person(central) as page:
        await drawn(page)
        address = page.url
    async with person(central, java_script_enabled=False) as page:
        await page.goto(address)
        await expect(page.locator(".drawing .node")).to_have_count(5)
        with central.central.bus.subscribe() as news, anyio.fail_after(60):
            await page.get_by_role("button", name="Analyze: findings").click()
            async for event in news:
                if event.kind == "analysis.ended":
                    break
        await page.goto(address)
        await page.get_by_role("link", name="1 broken reference").click()
        await expect(page.locator("#table")).to_contain_text("unused symbol: function forgotten")
