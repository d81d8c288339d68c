// Pictures of instances: their addresses, their size, and small copies of them.

import { $, $$, kept, make } from "./dom.js";
import { desk } from "./desk.js";
import { send } from "./server.js";

const SHARP = 64; // pixels from which thumbnails would be blurred, so larger pictures are loaded
const LARGE = 256; // pixels of a side of the larger pictures

const form = () => $(".desk").dataset.form;
export const isText = () => form() === "texts";
export const thumbPath = (row) => `/api/windows/${desk.window}/thumbs/${row}.png`;
export const picturePath = (row, side) => `/api/windows/${desk.window}/pictures/${row}${side ? `?side=${side}` : ""}`;

// A small copy of an instance, such as for a dialog.
export function makeMiniature(row) {
  const shown = $(`button.thumb[data-row="${row}"]`);
  if (!isText()) return make("img", { src: thumbPath(row), alt: "", className: `miniature ${form()}` });
  const text = make("span", { className: "miniature texts", textContent: shown ? $(".excerpt", shown).textContent : "" });
  if (!shown) send("GET", `/api/windows/${desk.window}/instances/${row}`).then((one) => { text.textContent = one.text; });
  return text;
}

// The size slider. Large pictures are made from the originals.
export function openSizes() {
  const slider = $("#size");
  slider.value = kept.get("picture-size", slider.value);
  slider.addEventListener("input", () => { kept.set("picture-size", slider.value); showSize(); });
  new MutationObserver(sharpen).observe($(".desk"), { childList: true, subtree: true });
  showSize();
}

function showSize() {
  document.documentElement.style.setProperty("--picture", `${$("#size").value}px`);
  sharpen();
}

function sharpen() {
  const large = Number($("#size").value) > SHARP && form() === "images";
  for (const image of $$("button.thumb img")) {
    const row = image.closest(".thumb").dataset.row;
    const path = large ? picturePath(row, LARGE) : thumbPath(row);
    if (image.getAttribute("src") !== path) image.src = path;
    image.classList.toggle("sharp", large);
  }
}
