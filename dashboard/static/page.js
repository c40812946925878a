// What the pages need of a script besides htmx: a stream that rests while its tab is hidden, and times in words.
"use strict";

// --- the stream ------------------------------------------------------------------------------------------------------

// A browser has six connections to a host: all its pages share one stream, in a worker (streams.js). Where browsers have
// no such workers, each page has its own.
const WORKER = new URL("streams.js", document.currentScript.src);

class OwnStream {
  static RETRY_MS = 1000;
  static QUIET_MS = 90_000; // as in streams.js

  constructor(heard) {
    this.heard = heard;
    this.names = new Set();
    setInterval(() => this.source && Date.now() - this.heardAt > OwnStream.QUIET_MS && this.again(), OwnStream.QUIET_MS / 6);
  }

  again() {
    const { address, names } = this;
    this.heard("error");
    this.hide();
    this.show(address, names);
  }

  show(address, names) {
    if (address !== this.address) this.hide();
    this.address = address;
    if (!this.source) this.connect(names);
    for (const name of names) this.listen(name);
  }

  connect() {
    this.heardAt = Date.now();
    this.source = new EventSource(this.address.replace("/dashboard", "/dashboard/live"));
    for (const name of ["open", "here"]) this.source.addEventListener(name, () => (this.heardAt = Date.now()));
    this.source.onopen = () => this.heard("open");
    this.source.onerror = () => {
      this.heard("error");
      if (this.source.readyState !== EventSource.CLOSED) return;
      const { address, names } = this;
      this.hide();
      this.later = setTimeout(() => this.show(address, names), OwnStream.RETRY_MS);
    };
  }

  listen(name) {
    if (this.names.has(name)) return;
    this.names.add(name);
    this.source.addEventListener(name, (event) => {
      this.heardAt = Date.now();
      this.heard(name, event.data);
    });
  }

  hide() {
    clearTimeout(this.later);
    this.source?.close();
    this.source = undefined;
    this.names = new Set();
  }
}

class SharedStream {
  static STILL_HERE_MS = 20_000;

  constructor(heard) {
    this.port = new SharedWorker(WORKER).port;
    this.port.onmessage = ({ data }) => heard(data.name, data.text);
    addEventListener("pagehide", () => this.hide());
    // A page that crashed says nothing: the worker forgets who has been silent for long.
    setInterval(() => this.address && this.port.postMessage({ address: this.address }), SharedStream.STILL_HERE_MS);
  }

  show(address) {
    this.address = address;
    this.port.postMessage({ address });
  }

  hide() {
    this.address = undefined;
    this.port.postMessage({});
  }
}

// The page's only one: a port stays open however often the page's content is replaced.
const stream = new (window.SharedWorker ? SharedStream : OwnStream)((name, text) => PatientSource.current?.hear(name, text));

// What htmx's SSE extension takes for an EventSource: it rests while the tab is hidden, comes back by itself, also when
// the server was restarted, and says when it is away. It is of the page's address, also when that changes while the page
// stays: by what one types into a filter.
class PatientSource {
  static address() {
    return location.pathname + location.search;
  }

  constructor() {
    PatientSource.current = this;
    this.listeners = [];
    this.readyState = EventSource.CONNECTING;
    this.addEventListener("leave", () => location.reload());
    this.addEventListener("version", (event) => {
      if (event.data !== document.body.dataset.version) location.reload();
    });
    this.watch = () => (document.hidden ? this.rest() : this.connect());
    this.follow = () => this.address && this.address !== PatientSource.address() && this.connect();
    document.addEventListener("visibilitychange", this.watch);
    document.addEventListener("htmx:afterSwap", this.follow);
    addEventListener("pageshow", this.watch);
    setTimeout(this.watch); // when all its listeners are there
  }

  addEventListener(name, listener) {
    this.listeners.push([name, listener]);
  }

  removeEventListener(name, listener) {
    this.listeners = this.listeners.filter(([, other]) => other !== listener);
  }

  hear(name, text) {
    if (name === "open" || name === "error") away(name === "error");
    if (name === "open" && this.readyState !== EventSource.OPEN) {
      this.readyState = EventSource.OPEN;
      this.onopen?.(new Event("open"));
    }
    for (const [wanted, listener] of this.listeners) if (wanted === name) listener(new MessageEvent(name, { data: text }));
  }

  connect() {
    if (PatientSource.current !== this) return;
    this.address = PatientSource.address();
    stream.show(this.address, new Set(this.listeners.map(([name]) => name)));
  }

  rest() {
    this.address = undefined;
    if (PatientSource.current === this) stream.hide();
  }

  close() {
    document.removeEventListener("visibilitychange", this.watch);
    document.removeEventListener("htmx:afterSwap", this.follow);
    removeEventListener("pageshow", this.watch);
    this.rest();
    if (PatientSource.current === this) PatientSource.current = undefined;
    this.readyState = EventSource.CLOSED;
  }
}

function away(lost) {
  const sign = document.querySelector("[data-connection]");
  if (sign) sign.hidden = !lost;
}

htmx.createEventSource = () => new PatientSource();

// What a person has opened, ticked or typed is his: news leave it as it is. So do times that say the same.
Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, element) =>
  !(name === "open" && element.tagName === "DETAILS") &&
  !((name === "checked" || name === "value") && element.matches("input:not([type=hidden]), select, textarea"));
Idiomorph.defaults.callbacks.beforeNodeMorphed = (before, after) =>
  !(before.tagName === "TIME" && before.dateTime === after.dateTime);

// --- times -----------------------------------------------------------------------------------------------------------

const relative = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const STEPS = [[86400, "day"], [3600, "hour"], [60, "minute"]];

function words(at) {
  const seconds = (at - Date.now()) / 1000;
  for (const [step, unit] of STEPS) {
    if (Math.abs(seconds) >= step) return relative.format(Math.trunc(seconds / step), unit);
  }
  return Math.abs(seconds) < 5 ? "just now" : relative.format(Math.trunc(seconds), "second");
}

function tell() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    const text = words(at);
    if (time.textContent !== text) time.textContent = text;
    if (!time.title) time.title = exact.format(at);
  }
}

// Labels of plots come in UTC: `14:05 UTC`, or `14:05 UTC: 3 calls`.
const clock = { hour: "2-digit", minute: "2-digit" };
const FORMS = Object.fromEntries(
  Object.entries({ second: { ...clock, second: "2-digit" }, minute: clock, stamp: { month: "short", day: "numeric", ...clock } })
    .map(([form, parts]) => [form, new Intl.DateTimeFormat(undefined, { ...parts, hourCycle: "h23" })]));

function localise() {
  for (const text of document.querySelectorAll(".plot [data-at]")) {
    const [utc, rest] = text.textContent.split(" UTC", 2);
    if (rest === undefined || utc.includes(": ")) continue;
    text.textContent = FORMS[text.closest("[data-form]").dataset.form].format(new Date(1000 * Number(text.dataset.at))) + rest;
  }
}

setInterval(() => document.hidden || tell(), 1000);
document.addEventListener("htmx:afterSwap", tell);
document.addEventListener("htmx:afterSwap", localise);
document.addEventListener("visibilitychange", tell);
tell();
localise();

// --- zooming ---------------------------------------------------------------------------------------------------------

// Dragging over a plot whose page takes a range of time shows that part of it. The view box is 560 wide; the axis is from
// 52 to 552.
let drag;

function axisX(event, svg) {
  const box = svg.getBoundingClientRect();
  return Math.min(552, Math.max(52, ((event.clientX - box.left) / box.width) * 560));
}

document.addEventListener("pointerdown", (event) => {
  const svg = event.target.closest?.("svg[data-since]");
  if (!svg || event.button !== 0) return;
  const from = axisX(event, svg);
  const band = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ class: "band", x: from, y: 10, width: 0, height: 118 })) {
    band.setAttribute(name, value);
  }
  svg.append(band);
  drag = { svg, from, band };
  event.preventDefault();
});

document.addEventListener("pointermove", (event) => {
  if (!drag) return;
  const to = axisX(event, drag.svg);
  drag.band.setAttribute("x", Math.min(drag.from, to));
  drag.band.setAttribute("width", Math.abs(to - drag.from));
});

document.addEventListener("pointerup", (event) => {
  if (!drag) return;
  const { svg, from, band } = drag, to = axisX(event, svg);
  drag = undefined;
  band.remove();
  if (Math.abs(to - from) < 4) return;
  const since = Number(svg.dataset.since), length = Number(svg.dataset.until) - since;
  const at = (x) => Math.round(since + (length * (x - 52)) / 500);
  const url = new URL(location);
  url.searchParams.delete("range");
  url.searchParams.set("since", at(Math.min(from, to)));
  url.searchParams.set("until", at(Math.max(from, to)));
  location.assign(url);
});

// --- the navigation --------------------------------------------------------------------------------------------------

// On a phone the page that one is on may be beyond the edge.
function showCurrent() {
  document.querySelector(".top nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

document.addEventListener("htmx:afterSwap", (event) => event.target === document.body && showCurrent());
showCurrent();

// --- after an action -------------------------------------------------------------------------------------------------

// Its question was answered; what it did is said for a while.
let quiet;
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.requestConfig?.verb !== "post") return;
  for (const open of document.querySelectorAll("details.confirm[open]")) {
    const own = open.contains(document.activeElement);
    open.open = false;
    if (own) open.querySelector("summary").focus({ preventScroll: true });
  }
  if (event.detail.successful) {
    for (const box of event.target.querySelectorAll("input[type=checkbox]")) box.checked = false;
  }
  quietSoon();
});

// Of a form that replaces the page: the answer of a tool is shown, of other forms it is said that they were taken.
document.addEventListener("htmx:afterSettle", ({ detail, target }) => {
  if (target !== document.body || detail.requestConfig?.verb !== "post") return;
  const answer = document.getElementById("answer");
  if (answer) return answer.scrollIntoView({ block: "nearest" });
  say("done", "Done.");
  quietSoon();
});

// What is refused replaces nothing of the page, whoever refuses it and in whatever form: what one typed stays.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.xhr.status < 400) return;
  detail.shouldSwap = false;
  const text = wordsOf(detail.xhr).replace(/\s+/g, " ").trim().slice(0, 1000);
  say("failed", text || `The server answered with status ${detail.xhr.status}.`);
});

// A page's, those of an error of /api, or a text as it is.
function wordsOf(xhr) {
  const kind = xhr.getResponseHeader("content-type") ?? "", text = xhr.responseText;
  if (kind.startsWith("text/html")) {
    const page = new DOMParser().parseFromString(text, "text/html");
    return (page.querySelector("main") ?? page.body).textContent;
  }
  try {
    return String(JSON.parse(text).error.message);
  } catch {
    return text;
  }
}

// The server may have done it before the connection broke.
document.addEventListener("htmx:sendError", ({ detail }) => {
  if (detail.requestConfig?.verb !== "post") return say("failed", "The server did not answer. Try again in a moment.");
  const typed = detail.elt.querySelector?.("input:not([type=hidden], [type=checkbox]), textarea");
  const first = typed ? "Copy what you typed, then reload" : "Reload";
  say("failed", `The server did not answer. ${first} the page to see whether it was done.`);
});

function say(how, text) {
  clearTimeout(quiet);
  const said = document.createElement("span");
  said.className = how;
  said.textContent = text;
  document.getElementById("said")?.replaceChildren(said);
}

// A failure is there until the next answer.
function quietSoon() {
  clearTimeout(quiet);
  if (!document.querySelector("#said .failed")) quiet = setTimeout(() => document.getElementById("said")?.replaceChildren(), 6000);
}

// Who works by keyboard goes on where they were: at what now stands in that place, else at the content's beginning.
let focused;
document.addEventListener("focusin", (event) => (focused = event.target));
document.addEventListener("htmx:afterSwap", () => {
  if (!focused || focused.isConnected || document.activeElement !== document.body) return;
  const again = focused.id && document.getElementById(focused.id);
  (again || document.getElementById("main")).focus({ preventScroll: true });
});

// Escape closes an open question.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const open of document.querySelectorAll("details.confirm[open]")) {
    open.open = false;
    open.querySelector("summary").focus();
  }
});

// --- filters ---------------------------------------------------------------------------------------------------------

// What was left empty stays out of the address.
document.addEventListener("htmx:configRequest", (event) => {
  if (event.detail.verb !== "get") return;
  for (const [name, value] of [...event.detail.formData]) if (!value) event.detail.formData.delete(name);
});

// --- copying ---------------------------------------------------------------------------------------------------------

// Said where actions are: a button that is kept up to date would lose its text at once.
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("done", "Copied.");
  } catch {
    say("failed", "The browser did not copy. It does so on https and on localhost alone.");
  }
  quietSoon();
}

// Of ids, pids, paths: on the page from the start, and again when it is kept up to date.
document.addEventListener("click", (event) => {
  const button = event.target.closest?.(".copy-value");
  if (button) copied(button.dataset.value);
});

for (const text of document.querySelectorAll("pre[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy: ${text.getAttribute("aria-label")}`);
  button.addEventListener("click", () => copied(text.textContent));
  const frame = document.createElement("div");
  frame.className = "copyable";
  text.replaceWith(frame);
  frame.append(text, button);
}

// --- choosing several ------------------------------------------------------------------------------------------------

// A checkbox with data-all ticks all of that name.
document.addEventListener("change", (event) => {
  const name = event.target.dataset?.all;
  if (name) {
    for (const box of document.querySelectorAll(`input[type=checkbox][name="${name}"]`)) box.checked = event.target.checked;
  }
});
