// What the pages need of a script besides htmx: a stream that rests while its tab is hidden, and times in words.
"use strict";

// --- the stream ------------------------------------------------------------------------------------------------------

// What htmx's SSE extension takes for an EventSource: it closes while the tab is hidden (a browser has six connections
// to a host), comes back by itself, also when the server was restarted, and says when it is away.
class PatientSource {
  static RETRY_MS = 1000;

  constructor(url) {
    this.url = url;
    this.listeners = [];
    this.readyState = EventSource.CONNECTING;
    this.addEventListener("leave", () => location.reload());
    this.addEventListener("version", (event) => {
      if (event.data !== document.body.dataset.version) location.reload();
    });
    this.watch = () => (document.hidden ? this.rest() : this.connect());
    document.addEventListener("visibilitychange", this.watch);
    this.watch();
  }

  addEventListener(name, listener) {
    this.listeners.push([name, listener]);
    this.source?.addEventListener(name, listener);
  }

  removeEventListener(name, listener) {
    this.listeners = this.listeners.filter(([, other]) => other !== listener);
    this.source?.removeEventListener(name, listener);
  }

  connect() {
    this.rest();
    this.source = new EventSource(this.url);
    for (const [name, listener] of this.listeners) this.source.addEventListener(name, listener);
    this.source.onopen = () => {
      this.readyState = EventSource.OPEN;
      away(false);
      this.onopen?.(new Event("open"));
    };
    this.source.onerror = () => {
      away(true);
      if (this.source.readyState === EventSource.CLOSED) {
        this.later = setTimeout(() => this.connect(), PatientSource.RETRY_MS);
      }
    };
  }

  rest() {
    clearTimeout(this.later);
    this.source?.close();
    this.source = undefined;
  }

  close() {
    document.removeEventListener("visibilitychange", this.watch);
    this.rest();
    this.readyState = EventSource.CLOSED;
  }
}

function away(lost) {
  const sign = document.querySelector("[data-connection]");
  if (sign) sign.hidden = !lost;
}

htmx.createEventSource = (url) => new PatientSource(url);

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

setInterval(() => document.hidden || tell(), 1000);
document.addEventListener("htmx:afterSwap", tell);
document.addEventListener("visibilitychange", tell);
tell();

// --- after an action -------------------------------------------------------------------------------------------------

// Its question was answered; what it did is said for a while.
let quiet;
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.requestConfig?.verb !== "post") return;
  for (const open of document.querySelectorAll("details.confirm[open]")) open.open = false;
  if (event.detail.successful) {
    for (const box of event.target.querySelectorAll("input[type=checkbox]")) box.checked = false;
  }
  clearTimeout(quiet);
  quiet = setTimeout(() => document.getElementById("said")?.replaceChildren(), 6000);
});

// Escape closes an open question.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const open of document.querySelectorAll("details.confirm[open]")) {
    open.open = false;
    open.querySelector("summary").focus();
  }
});

// --- choosing several ------------------------------------------------------------------------------------------------

// A checkbox with data-all ticks all of that name.
document.addEventListener("change", (event) => {
  const name = event.target.dataset?.all;
  if (name) {
    for (const box of document.querySelectorAll(`input[type=checkbox][name="${name}"]`)) box.checked = event.target.checked;
  }
});
