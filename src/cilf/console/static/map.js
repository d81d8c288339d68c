"use strict";
// The map of a window on a canvas: hover to see an instance, draw a line around instances to choose them.

class WindowMap {
  constructor(canvas, hover, { onHover, onChoose }) {
    this.canvas = canvas;
    this.hover = hover;
    this.onHover = onHover;
    this.onChoose = onChoose;
    this.data = null;
    this.chosen = new Set();
    this.line = null;
    canvas.addEventListener("pointerdown", (event) => this.start(event));
    canvas.addEventListener("pointermove", (event) => this.moveTo(event));
    canvas.addEventListener("pointerup", (event) => this.end(event));
    canvas.addEventListener("pointercancel", () => this.cancel());
    canvas.addEventListener("pointerleave", () => { this.hover.hidden = true; });
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  show(data) { this.data = data; this.draw(); }

  choose(rows) { this.chosen = new Set(rows); this.draw(); }

  place(row) {
    const side = this.canvas.clientWidth, margin = 16;
    const scale = (side - 2 * margin) / 1000;
    return [margin + this.data.x[row] * scale, margin + (1000 - this.data.y[row]) * scale];
  }

  draw() {
    const side = this.canvas.clientWidth, ratio = window.devicePixelRatio || 1;
    if (!this.data || !side) return;
    this.canvas.width = this.canvas.height = side * ratio;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const colours = Array.from({ length: 8 }, (_, i) => colour(`--k${i}`));
    const { cluster, label } = this.data, n = cluster.length;
    const small = n > 3000 ? 1.6 : n > 600 ? 2.4 : 3.2;
    const middles = new Map();
    for (let row = 0; row < n; row++) {
      if (cluster[row]) continue;
      const [x, y] = this.place(row);
      pen.globalAlpha = 0.4;
      pen.fillStyle = colours[label[row] % 8];
      pen.beginPath(); pen.arc(x, y, small, 0, 7); pen.fill();
    }
    pen.globalAlpha = 1;
    for (let row = 0; row < n; row++) {
      if (!cluster[row]) continue;
      const [x, y] = this.place(row);
      pen.fillStyle = colour("--card");
      pen.strokeStyle = colours[(cluster[row] - 1) % 8];
      pen.lineWidth = 1.8;
      pen.beginPath(); pen.arc(x, y, small + 0.9, 0, 7); pen.fill(); pen.stroke();
      if (!middles.has(cluster[row])) middles.set(cluster[row], [[], []]);
      const [xs, ys] = middles.get(cluster[row]);
      xs.push(x); ys.push(y);
    }
    pen.strokeStyle = colour("--novel");
    pen.lineWidth = 3;
    for (const row of this.chosen) {
      const [x, y] = this.place(row);
      pen.beginPath(); pen.arc(x, y, small + 3.5, 0, 7); pen.stroke();
    }
    const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
    pen.textAlign = "center"; pen.textBaseline = "middle";
    pen.font = `700 12px ${colour("--sans")}`;
    for (const [number, [xs, ys]] of middles) {
      const x = median(xs), y = median(ys);
      pen.fillStyle = colours[(number - 1) % 8];
      pen.strokeStyle = colour("--card");
      pen.lineWidth = 2;
      pen.beginPath(); pen.arc(x, y, 11, 0, 7); pen.fill(); pen.stroke();
      pen.fillStyle = colour("--card");
      pen.fillText(String(number), x, y + 0.5);
    }
    if (this.line && this.line.length > 1) {
      pen.strokeStyle = colour("--ink");
      pen.fillStyle = colour("--novel");
      pen.lineWidth = 1.4;
      pen.setLineDash([5, 4]);
      pen.beginPath();
      this.line.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
      pen.closePath(); pen.stroke();
      pen.globalAlpha = 0.1; pen.fill();
    }
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  start(event) {
    if (!this.data) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.line = [this.at(event)];
    this.hover.hidden = true;
  }

  moveTo(event) {
    if (!this.data) return;
    const [x, y] = this.at(event);
    if (this.line) { this.line.push([x, y]); this.draw(); return; }
    const row = this.nearest(x, y, 9);
    if (row === null) { this.hover.hidden = true; return; }
    this.onHover(row, x, y);
  }

  nearest(x, y, reach) {
    let best = null, least = reach * reach;
    for (let row = 0; row < this.data.x.length; row++) {
      const [px, py] = this.place(row), away = (px - x) ** 2 + (py - y) ** 2;
      if (away < least) { least = away; best = row; }
    }
    return best;
  }

  end(event) {
    if (!this.line) return;
    const line = this.line, [x, y] = this.at(event);
    this.line = null;
    const long = line.some(([a, b]) => Math.hypot(a - line[0][0], b - line[0][1]) > 6);
    let rows = [];
    if (!long) {
      const row = this.nearest(x, y, 9);
      if (row !== null) rows = [row];
    } else {
      for (let row = 0; row < this.data.x.length; row++) {
        if (inside(this.place(row), line)) rows.push(row);
      }
    }
    this.onChoose(rows, event.shiftKey);
  }

  cancel() { this.line = null; this.draw(); }
}

// Whether a point lies inside a closed line: how often a ray from it crosses the line.
function inside([x, y], line) {
  let within = false;
  for (let i = 0, j = line.length - 1; i < line.length; j = i++) {
    const [xi, yi] = line[i], [xj, yj] = line[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) within = !within;
  }
  return within;
}
