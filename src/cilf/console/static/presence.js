// Who else looks at this window, and at which cluster.

import { $, $$, make } from "./dom.js";
import { cards, desk, numberOf, on } from "./desk.js";
import { onPoll } from "./jobs.js";
import { personName, send } from "./server.js";

// The name of this page, which it keeps when it is loaded again.
const page = sessionStorage.page ||= Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
let others = [];

async function look() {
  others = await send("POST", `/api/windows/${desk.window}/presence`, { page, person: personName(), cluster: desk.current }).catch(() => []);
  show();
}

function show() {
  const lines = others.map(({ person, cluster }) => `${person} looks at ${cluster ? `cluster ${cluster}` : "this window"}`);
  $("#present").textContent = lines.join(", ");
  $$("#clusters .viewers").forEach((old) => old.remove());
  for (const card of cards()) {
    const here = others.filter((one) => one.cluster === numberOf(card)).map((one) => one.person);
    if (here.length) $("h3", card).append(make("span", { className: "tag viewers", textContent: `${here.join(", ")} is here` }));
  }
}

export function openPresence() {
  on("refreshed", show);
  onPoll(look);
}
