// The drawing of a graph: larger and smaller by buttons, keys and wheel, moved by dragging, edges that can be clicked.
// Without a script it scrolls, and its nodes lead on.
"use strict";

const frame = document.getElementById("graph");
const inner = document.getElementById("shown");
const STEP = 1.25, LEAST = 0.2, MOST = 5;
let zoom = 1;

// Keeps the point at `x`, `y` of the frame where it is.
function zoomTo(wanted, x = frame.clientWidth / 2, y = frame.clientHeight / 2) {
  const next = Math.min(MOST, Math.max(LEAST, wanted));
  const left = (frame.scrollLeft + x) * (next / zoom) - x;
  const top = (frame.scrollTop + y) * (next / zoom) - y;
  zoom = next;
  inner.style.zoom = zoom;
  frame.scrollTo(left, top);
}

function zoomBy(direction, x, y) {
  zoomTo(direction === 0 ? 1 : zoom * STEP ** direction, x, y);
}

const buttons = document.querySelector("[data-zoom]");
buttons.hidden = false;
buttons.addEventListener("click", (event) => {
  const by = event.target.dataset.zoomBy;
  if (by !== undefined) zoomBy(Number(by));
});

frame.addEventListener("keydown", (event) => {
  const by = { "+": 1, "=": 1, "-": -1, "0": 0 }[event.key];
  if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  zoomBy(by);
});

// The wheel scrolls; with Ctrl, as a pinch is told, it zooms around the pointer.
frame.addEventListener("wheel", (event) => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  const box = frame.getBoundingClientRect();
  zoomBy(-Math.sign(event.deltaY), event.clientX - box.left, event.clientY - box.top);
}, { passive: false });

// --- moving by the pointer ---------------------------------------------------------------------------------------------

frame.addEventListener("pointerdown", (event) => {
  if (event.button !== 0 || event.pointerType === "touch" || event.target.closest("a, [data-ends]")) return;
  if (!event.target.closest("svg")) return;
  let [x, y] = [event.clientX, event.clientY];
  const move = (moved) => {
    frame.scrollBy(x - moved.clientX, y - moved.clientY);
    [x, y] = [moved.clientX, moved.clientY];
  };
  const end = new AbortController();
  frame.setPointerCapture(event.pointerId);
  frame.addEventListener("pointermove", move, { signal: end.signal });
  for (const name of ["pointerup", "pointercancel"]) {
    frame.addEventListener(name, () => end.abort(), { signal: end.signal });
  }
});

// --- edges -------------------------------------------------------------------------------------------------------------

// They lead to their references; people without a pointer get there by the nodes.
frame.addEventListener("click", (event) => {
  const edge = event.target.closest("[data-ends]");
  if (!edge) return;
  const drawing = edge.closest("svg");
  const nodes = drawing.querySelectorAll(".node");
  const [source, target] = edge.dataset.ends.split(" ").map((place) => {
    const leads = nodes[place].querySelector("a").getAttribute("href");
    return new URL(leads, location.href).searchParams.get("of");
  });
  const url = new URL(drawing.dataset.references, location.href);
  url.searchParams.set("source", source);
  url.searchParams.set("target", target);
  location.assign(url);
});
