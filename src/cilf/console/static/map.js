// A map of instances on a canvas: point at an instance, draw a line around some, zoom and pan.

const MARGIN = 16;
const MAX_ZOOM = 40;
const REACH = 9; // pixels from the pointer within which an instance is hit
const N_COLOURS = 8;

export class WindowMap {
  constructor(canvas, { onHover, onLeave, onChoose }) {
    Object.assign(this, { canvas, onHover, onLeave, onChoose });
    this.data = null;
    this.colouring = "cluster"; // or "class", "novelty"
    this.panning = false; // whether dragging moves the map
    this.hidden = new Set(); // keys of the legend that are not shown
    this.view = { zoom: 1, x: 0, y: 0 };
    this.chosen = new Set();
    this.region = null; // the line that was drawn last, while its instances are chosen
    this.line = null; // the line that is being drawn
    this.pointers = new Map();
    this.base = document.createElement("canvas"); // everything but what is chosen
    canvas.addEventListener("pointerdown", (event) => this.start(event));
    canvas.addEventListener("pointermove", (event) => this.moveTo(event));
    canvas.addEventListener("pointerup", (event) => this.end(event));
    canvas.addEventListener("pointercancel", (event) => this.cancel(event));
    canvas.addEventListener("pointerleave", () => this.onLeave());
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); this.zoom(event.deltaY < 0 ? 1.25 : 0.8, this.at(event)); }, { passive: false });
    new ResizeObserver(() => this.drawAll()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.drawAll());
  }

  show(data) { this.data = data; this.drawAll(); }

  colourBy(colouring) { this.colouring = colouring; this.hidden.clear(); this.drawAll(); }

  toggle(key) {
    if (!this.hidden.delete(key)) this.hidden.add(key);
    this.drawAll();
  }

  choose(rows) {
    this.chosen = new Set(rows);
    if (this.region && !this.region.rows.every((row) => this.chosen.has(row))) this.region = null;
    this.draw();
  }

  // ---------------------------------------------------------------- places

  // The place of an instance on the canvas.
  place(row) { return this.project(this.data.x[row], this.data.y[row]); }

  project(x, y) {
    const scale = (this.canvas.clientWidth - 2 * MARGIN) / 1000, { zoom, x: left, y: top } = this.view;
    return [(MARGIN + x * scale) * zoom + left, (MARGIN + (1000 - y) * scale) * zoom + top];
  }

  unproject([px, py]) {
    const scale = (this.canvas.clientWidth - 2 * MARGIN) / 1000, { zoom, x: left, y: top } = this.view;
    return [((px - left) / zoom - MARGIN) / scale, 1000 - ((py - top) / zoom - MARGIN) / scale];
  }

  // Zoom, so that a point of the canvas stays where it is.
  zoom(by, [x, y] = [this.canvas.clientWidth / 2, this.canvas.clientWidth / 2]) {
    const { view } = this, after = Math.min(MAX_ZOOM, Math.max(1, view.zoom * by)), change = after / view.zoom;
    this.lookAt({ zoom: after, x: x - (x - view.x) * change, y: y - (y - view.y) * change });
  }

  pan(dx, dy) { this.lookAt({ ...this.view, x: this.view.x + dx, y: this.view.y + dy }); }

  // The map never leaves the canvas.
  lookAt({ zoom, x, y }) {
    const least = this.canvas.clientWidth * (1 - zoom);
    this.view = { zoom, x: Math.min(0, Math.max(least, x)), y: Math.min(0, Math.max(least, y)) };
    this.drawAll();
  }

  // ---------------------------------------------------------------- colours

  // The group of an instance in the legend.
  keyOf(row) {
    if (this.colouring === "novelty") return "novelty";
    if (this.data.cluster[row]) return `cluster ${this.data.cluster[row]}`;
    return this.colouring === "cluster" ? "known" : `class ${this.data.label[row]}`;
  }

  isShown(row) { return !this.hidden.has(this.keyOf(row)); }

  colourOf(row, palette) {
    const { cluster, label } = this.data;
    if (this.colouring === "novelty") return palette.novel;
    if (this.colouring === "class") return palette.groups[label[row] % N_COLOURS];
    return cluster[row] ? palette.groups[(cluster[row] - 1) % N_COLOURS] : palette.soft;
  }

  palette() {
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
    return {
      groups: Array.from({ length: N_COLOURS }, (_, i) => colour(`--k${i}`)),
      card: colour("--card"), ink: colour("--ink"), soft: colour("--soft"), novel: colour("--novel"), accent: colour("--accent"), font: colour("--sans"),
    };
  }

  // ---------------------------------------------------------------- drawing

  drawAll() {
    const side = this.canvas.clientWidth, ratio = window.devicePixelRatio || 1;
    if (!this.data || !side) return;
    this.canvas.width = this.canvas.height = this.base.width = this.base.height = side * ratio;
    const pen = this.base.getContext("2d"), palette = this.palette();
    pen.scale(ratio, ratio);
    const n = this.data.cluster.length;
    this.dot = (n > 3000 ? 1.6 : n > 600 ? 2.4 : 3.2) * Math.min(2, 1 + Math.log2(this.view.zoom) / 4);
    this.drawKnown(pen, palette);
    this.drawNovel(pen, palette);
    this.draw();
  }

  drawKnown(pen, palette) {
    for (let row = 0; row < this.data.cluster.length; row++) {
      if (this.data.cluster[row] || !this.isShown(row)) continue;
      const [x, y] = this.place(row);
      pen.globalAlpha = this.colouring === "novelty" ? 0.12 + 0.0088 * this.data.novelty[row] : 0.4;
      pen.fillStyle = this.colourOf(row, palette);
      pen.beginPath(); pen.arc(x, y, this.dot, 0, 7); pen.fill();
    }
    pen.globalAlpha = 1;
  }

  drawNovel(pen, palette) {
    const middles = new Map();
    for (let row = 0; row < this.data.cluster.length; row++) {
      const number = this.data.cluster[row];
      if (!number || !this.isShown(row)) continue;
      const [x, y] = this.place(row);
      pen.fillStyle = palette.card;
      pen.strokeStyle = this.colourOf(row, palette);
      pen.globalAlpha = this.colouring === "novelty" ? 0.12 + 0.0088 * this.data.novelty[row] : 1;
      pen.lineWidth = 1.8;
      pen.beginPath(); pen.arc(x, y, this.dot + 0.9, 0, 7); pen.fill(); pen.stroke();
      if (!middles.has(number)) middles.set(number, [[], []]);
      const [xs, ys] = middles.get(number);
      xs.push(x); ys.push(y);
    }
    pen.globalAlpha = 1;
    for (const [number, [xs, ys]] of middles) drawNumber(pen, palette, number, median(xs), median(ys));
  }

  // What is chosen, over everything else.
  draw() {
    const ratio = window.devicePixelRatio || 1, pen = this.canvas.getContext("2d"), palette = this.palette();
    if (!this.data || !this.canvas.width) return;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.base, 0, 0);
    pen.scale(ratio, ratio);
    pen.strokeStyle = palette.novel;
    pen.lineWidth = 3;
    for (const row of this.chosen) {
      const [x, y] = this.place(row);
      pen.beginPath(); pen.arc(x, y, this.dot + 3.5, 0, 7); pen.stroke();
    }
    const line = this.line || (this.region && this.region.points.map(([x, y]) => this.project(x, y)));
    if (line && line.length > 1) drawLine(pen, palette, line);
  }

  // ---------------------------------------------------------------- pointers

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  start(event) {
    if (!this.data) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.at(event));
    this.onLeave();
    const drags = this.panning || event.button === 1;
    this.line = this.pointers.size === 1 && !drags ? [this.at(event)] : null;
  }

  moveTo(event) {
    if (!this.data) return;
    const [x, y] = this.at(event), before = this.pointers.get(event.pointerId);
    if (!before) {
      const row = this.nearest(x, y);
      if (row === null) this.onLeave(); else this.onHover(row, x, y);
      return;
    }
    if (this.pointers.size === 2) this.pinch(event.pointerId, [x, y]);
    else if (this.line) { this.line.push([x, y]); this.draw(); }
    else this.pan(x - before[0], y - before[1]);
    this.pointers.set(event.pointerId, [x, y]);
  }

  pinch(id, [x, y]) {
    const before = this.pointers.get(id);
    const [, other] = [...this.pointers].find(([key]) => key !== id);
    const apart = (a) => Math.hypot(a[0] - other[0], a[1] - other[1]);
    this.pan((x - before[0]) / 2, (y - before[1]) / 2);
    this.zoom(apart([x, y]) / Math.max(1, apart(before)), [(x + other[0]) / 2, (y + other[1]) / 2]);
  }

  nearest(x, y) {
    let best = null, least = REACH * REACH;
    for (let row = 0; row < this.data.x.length; row++) {
      if (!this.isShown(row)) continue;
      const [px, py] = this.place(row), away = (px - x) ** 2 + (py - y) ** 2;
      if (away < least) { least = away; best = row; }
    }
    return best;
  }

  end(event) {
    const { line } = this, [x, y] = this.at(event);
    this.cancel(event);
    if (!line) return;
    const isLong = line.some(([a, b]) => Math.hypot(a - line[0][0], b - line[0][1]) > 6);
    const hit = isLong ? null : this.nearest(x, y);
    const rows = isLong ? this.rowsInside(line) : hit === null ? [] : [hit];
    this.region = isLong && rows.length ? { points: line.map((point) => this.unproject(point)), rows } : null;
    this.onChoose(rows, event.shiftKey);
  }

  rowsInside(line) {
    const rows = [];
    for (let row = 0; row < this.data.x.length; row++) {
      if (this.isShown(row) && isInside(this.place(row), line)) rows.push(row);
    }
    return rows;
  }

  cancel(event) { this.pointers.delete(event.pointerId); this.line = null; this.draw(); }
}

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

function drawNumber(pen, palette, number, x, y) {
  pen.textAlign = "center"; pen.textBaseline = "middle";
  pen.font = `700 12px ${palette.font}`;
  pen.fillStyle = palette.groups[(number - 1) % N_COLOURS];
  pen.strokeStyle = palette.card;
  pen.lineWidth = 2;
  pen.beginPath(); pen.arc(x, y, 11, 0, 7); pen.fill(); pen.stroke();
  pen.fillStyle = palette.card;
  pen.fillText(String(number), x, y + 0.5);
}

function drawLine(pen, palette, line) {
  pen.strokeStyle = palette.ink;
  pen.fillStyle = palette.novel;
  pen.lineWidth = 1.4;
  pen.setLineDash([5, 4]);
  pen.beginPath();
  line.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.closePath(); pen.stroke();
  pen.setLineDash([]);
  pen.globalAlpha = 0.1; pen.fill(); pen.globalAlpha = 1;
}

// Whether a point lies inside a closed line: how often a ray from it crosses the line.
function isInside([x, y], line) {
  let within = false;
  for (let i = 0, j = line.length - 1; i < line.length; j = i++) {
    const [xi, yi] = line[i], [xj, yj] = line[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) within = !within;
  }
  return within;
}
