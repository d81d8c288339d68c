// The instances that are similar to one: in the window, and in the memory of the model.

import { $ } from "./dom.js";
import { desk, showChosen } from "./desk.js";
import { put } from "./server.js";

export async function showSimilar(row) {
  const box = $("#similar");
  await put(box, `/windows/${desk.window}/section/similar?row=${row}`);
  box.hidden = false;
  showChosen();
  box.scrollIntoView({ block: "start" });
  box.focus({ preventScroll: true });
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-close-similar]")) $("#similar").hidden = true;
});
