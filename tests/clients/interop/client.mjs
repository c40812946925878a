// The TypeScript SDK's client, in its oldest version with this transport or its newest; see README.md.
// The first argument says which: "oldest" or "newest".
import { createInterface } from "node:readline";

const [which, era, url, token, project] = process.argv.slice(2);

const tell = (line) => process.stdout.write(JSON.stringify(line) + "\n");

async function sdk() {
  if (which === "newest") {
    const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
    const call = (client, params, options) => client.callTool(params, options);
    return { Client, StreamableHTTPClientTransport, call };
  }
  const { Client } = await import("mcp-typescript-oldest/client/index.js");
  const { StreamableHTTPClientTransport } = await import("mcp-typescript-oldest/client/streamableHttp.js");
  const call = (client, params, options) => client.callTool(params, undefined, options);
  return { Client, StreamableHTTPClientTransport, call };
}

const { Client, StreamableHTTPClientTransport, call } = await sdk();

async function connection() {
  const options = era === "modern" ? { versionNegotiation: { mode: "auto" } } : {};
  const client = new Client({ name: `typescript-${which}`, version: "1" }, options);
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  return client;
}

async function textOf(client, tool, given) {
  const result = await call(client, { name: tool, arguments: given });
  return [result.content[0].text, Boolean(result.isError)];
}

async function find(client) {
  const [text, isError] = await textOf(client, "find_symbol", { name_path_pattern: "Cart", project });
  if (isError) throw new Error(text);
  return text;
}

async function cancelWhatNeverEnds(client) {
  const controller = new AbortController();
  const onprogress = ({ message }) => {
    if (!controller.signal.aborted) tell({ progress: message });
    controller.abort("enough");
  };
  const params = { name: "find_referencing_symbols", arguments: { name_path: "Cart/total", project } };
  try {
    await call(client, params, { onprogress, signal: controller.signal });
  } catch (error) {
    if (!controller.signal.aborted) throw error;
    tell({ cancelled: String(error) });
  }
}

const clients = [await connection(), await connection()];
const [first] = clients;
tell({ tools: (await first.listTools()).tools.map((tool) => tool.name) });
tell({ found: await find(first) });
const [refused, isError] = await textOf(first, "read_file", { relative_path: "missing.py", project });
if (!isError) throw new Error(refused);
tell({ refused });
const unknown = await textOf(first, "no_such_tool", {}).catch((error) => [String(error), true]);
if (!unknown[1]) throw new Error(unknown[0]);
tell({ unknown: unknown[0] });
await cancelWhatNeverEnds(first);
const sessions = [];
for (const client of clients) sessions.push(JSON.parse((await textOf(client, "get_current_config", {}))[0]).session);
tell({ sessions });
tell({ ready: true });
const lines = createInterface({ input: process.stdin });
await new Promise((resolve) => lines.once("line", resolve));
lines.close();
tell({ again: await find(first) });
for (const client of clients) await client.close();
process.exit(0);
