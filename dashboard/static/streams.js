// Shared by all pages of this browser: one stream for what they show, since a browser has but six connections to a host.
// A page says which address it shows, now and then that it still does, and when it is hidden; it is told what changes.
"use strict";

const SILENT_MS = 60_000, GATHER_MS = 30, RETRY_MS = 1000;
const QUIET_MS = 90_000; // A server that is there says so each minute (pages/live.py); a network that broke says nothing.

const pages = new Map(); // port → the address that its page shows, and when it said so
let source, shown = [], connected = false, later, heardAt;

onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data: { address } }) => {
    const before = pages.get(port)?.address;
    if (address) pages.set(port, { address, at: Date.now() });
    else pages.delete(port);
    if (address === before) return;
    // A page whose address is in the stream already gets its sections as every other: by a new stream.
    clearTimeout(later);
    later = setTimeout(open, GATHER_MS);
  };
};

setInterval(() => {
  const silent = [...pages].filter(([, { at }]) => Date.now() - at > SILENT_MS);
  for (const [port] of silent) pages.delete(port);
  if (silent.length) open();
}, SILENT_MS / 4);

setInterval(() => {
  if (!source || Date.now() - heardAt < QUIET_MS) return;
  tell("error");
  open();
}, QUIET_MS / 6);

function open() {
  clearTimeout(later);
  heardAt = Date.now();
  source?.close();
  source = undefined;
  shown = [...new Set([...pages.values()].map(({ address }) => address))];
  if (!shown.length) return;
  source = new EventSource("/dashboard/live-pages?" + new URLSearchParams(shown.map((address) => ["page", address])));
  source.onopen = () => tell("open");
  source.onerror = () => {
    tell("error");
    if (source.readyState === EventSource.CLOSED) later = setTimeout(open, RETRY_MS);
  };
  for (const name of ["version", "leave"]) source.addEventListener(name, ({ data }) => tell(name, data));
  for (const name of ["open", "version", "message", "here"]) source.addEventListener(name, () => (heardAt = Date.now()));
  // `NUMBER SECTION`, then the section.
  source.onmessage = ({ data }) => {
    const end = data.indexOf("\n");
    const [number, name] = data.slice(0, end).split(" ");
    tell(name, data.slice(end + 1), shown[number]);
  };
}

function tell(name, text, address) {
  for (const [port, page] of pages) if (!address || page.address === address) port.postMessage({ name, text });
}
