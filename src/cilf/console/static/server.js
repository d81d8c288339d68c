// Requests to the server, and the name of the person who makes them.

import { $, kept } from "./dom.js";

const person = $("#person");
if (person) {
  person.value = kept.get("person", "");
  person.addEventListener("change", () => kept.set("person", person.value.trim()));
}

export const personName = () => (person ? person.value.trim() : "");

export async function send(method, path, body, headers = { "Content-Type": "application/json" }) {
  const isRaw = body instanceof FormData || body instanceof Blob || body === undefined;
  const who = { "X-Person": encodeURIComponent(personName()) };
  const response = await fetch(path, {
    method,
    headers: body instanceof FormData ? who : { ...headers, ...who },
    body: isRaw ? body : JSON.stringify(body),
  });
  const content = await response.json().catch(() => ({}));
  if (response.ok) return content;
  const problem = new Error(explain(content, response.status));
  problem.status = response.status;
  throw problem;
}

function explain(content, status) {
  if (Array.isArray(content.detail)) return content.detail.map((one) => `${one.loc.at(-1)}: ${one.msg}`).join("; ");
  const events = (content.events || []).map((one) => `${one.person || "somebody"}: ${one.verb} ${(one.about.clusters || []).join(", ")} ${one.about.name || ""}`.trim());
  return (content.detail || `The server answered ${status}.`) + (events.length ? ` (${events.join("; ")})` : "");
}

// Replace the content of an element by a section of the page.
export async function put(target, path) {
  const response = await fetch(path);
  if (response.ok) target.innerHTML = await response.text();
}
