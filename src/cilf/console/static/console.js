// The console's script. Each part of the page has a module of its own.
//
//   dom.js         finding and making elements, short messages
//   server.js      requests to the server
//   jobs.js        the jobs of the worker
//   forms.js       forms and buttons that send one request each
//   edits.js       forms that change one class or one window, after a question
//   desk.js        what is chosen on the page of a window, and its sections
//   verbs.js       verbs, likely classes and keys
//   members.js     lists of instances, and the strip of what is chosen
//   pictures.js    the size of pictures
//   lightbox.js    an instance in full size
//   similar.js     similar instances
//   map.js         the map on its canvas; map_view.js is its legend and controls
//   presence.js    who else looks at the window
//   browse.js      choosing data on the page of all windows
//   dialog.js      the dialog of the verbs

import { $, $$, attempt } from "./dom.js";
import { openBrowse } from "./browse.js";
import { cards, chooseCluster, desk, queriesPath, select, showOthersChanges, showUpdate } from "./desk.js";
import "./edits.js";
import "./forms.js";
import { onPoll, watch } from "./jobs.js";
import { openLightboxControls } from "./lightbox.js";
import { openMap } from "./map_view.js";
import { openMembers } from "./members.js";
import { openPresence } from "./presence.js";
import { openSizes } from "./pictures.js";
import { put, send } from "./server.js";
import { openVerbs } from "./verbs.js";

function openDesk() {
  desk.window = Number($(".desk").dataset.window);
  openSizes();
  openMembers();
  openLightboxControls();
  openMap();
  openVerbs();
  openPresence();
  select(cards()[0], false);
  const names = $$("[data-name-cluster] input");
  if (names.length === 1) names[0].focus({ preventScroll: true }); // a single question: type, Enter
  $("#strategy").addEventListener("change", () => put($("#queries"), queriesPath()));
  document.addEventListener("change", (event) => {
    if (event.target.id === "budget") attempt(async () => {
      await send("PUT", `/api/windows/${desk.window}/budget`, { budget: Number(event.target.value) });
      await put($("#queries"), queriesPath());
    });
    const card = event.target.closest(".cluster-card");
    if (card && event.target.type === "checkbox") chooseCluster(card, event.target.checked);
  });
  document.addEventListener("focusin", (event) => {
    const card = event.target.closest(".cluster-card");
    if (card) select(card, false);
  });
  onPoll(async (ended) => { if (ended || $("#update .progress")) await showUpdate(); });
  onPoll(showOthersChanges);
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea");
  const undo = document.body.dataset.page === "classes" && event.key.toLowerCase() === "u";
  if (undo && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) $("[data-post-button]").click();
});

if ($(".desk")) openDesk();
if ($("#browse")) openBrowse();
if ($("#jobs")) watch();
