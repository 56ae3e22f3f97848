// Live bytes, RSS and the rate of allocation over time, with marks. Drag to see a part of it, double-click to see all again.
import uPlot from "uplot";
import { colour } from "./dom.js";
import { bytes, clock, round } from "./format.js";

const byteSteps = [];
for (let unit = 1; unit < 2 ** 60; unit *= 1024) for (const n of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]) byteSteps.push(unit * n);

const axis = () => ({ stroke: colour("quiet"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1, size: 4 }, font: "11px system-ui, sans-serif" });
export const timeAxis = () => ({ ...axis(), values: (_, splits, __, ___, step) => splits.map(v => (step >= 60 ? clock(v).slice(0, 5) : clock(v))), space: 80, size: 30, incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400, 604800] });
export const byteAxis = () => ({ ...axis(), size: 68, incrs: byteSteps, values: (_, splits) => splits.map(v => (v == null ? "" : round(bytes(v)))) });

/// Lines with their names, as far as there is room.
export function drawMarks(plot, marks) {
  const c = plot.ctx, { left, top, width, height } = plot.bbox, scale = devicePixelRatio || 1;
  c.save();
  c.font = `${11 * scale}px system-ui, sans-serif`;
  c.textBaseline = "top";
  let free = 0;
  for (const mark of marks) {
    const x = Math.round(plot.valToPos(mark.at, "x", true));
    if (x < left || x > left + width) continue;
    c.fillStyle = colour("mark");
    c.fillRect(x, top, scale, height);
    const wide = c.measureText(mark.name).width;
    const isRoom = x + 4 * scale >= free && x + wide + 4 * scale < left + width;
    if (isRoom) {
      c.fillText(mark.name, x + 4 * scale, top + 2 * scale);
      free = x + wide + 12 * scale;
    }
  }
  c.restore();
}

export class Timeline {
  constructor(host, legend) {
    this.host = host;
    host.addEventListener("dblclick", () => { this.isPart = false; this.draw(); });
    this.legend = legend;
    this.points = { at: [], live: [], rss: [], bytes: [] };
    this.marks = [];
    this.hasRate = true;
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(host);
    this.restyle();
  }

  /// The rate of allocation is not known of a process without the probe.
  showRate(hasRate) {
    if (this.hasRate === hasRate) return;
    this.hasRate = hasRate;
    this.restyle();
  }

  size() {
    return { width: Math.max(this.host.clientWidth, 100), height: Math.max(this.host.clientHeight, 80) };
  }

  /// Colours are read once, when a plot is made: a change of theme makes another one.
  restyle() {
    this.plot?.destroy();
    const line = (label, name, more) => ({ label, stroke: colour(name), width: 1.5, points: { show: false }, ...more });
    this.plot = new uPlot({
      ...this.size(), padding: [22, this.hasRate ? 0 : 24, 0, 0],
      cursor: { points: { size: 6 }, drag: { x: true, y: false }, y: false },
      scales: { y: { range: (_, low, high) => [Math.min(low ?? 0, 0), Math.max((high ?? 1) * 1.06, 1)] }, rate: { range: (_, low, high) => [0, Math.max((high ?? 1) * 1.06, 1)] } },
      axes: [timeAxis(), byteAxis(),
        { ...byteAxis(), show: this.hasRate, scale: "rate", side: 1, grid: { show: false }, size: 78, values: (_, splits) => splits.map(v => round(bytes(v)) + "/s") }],
      series: [{}, line("live", "live", { fill: colour("live") + "1c" }), line("RSS", "rss"), line("allocated/s", "rate", { show: this.hasRate, scale: "rate", width: 1, dash: [3, 2] })],
      hooks: { draw: [plot => drawMarks(plot, this.marks)], setCursor: [plot => this.showLegend(plot.cursor.idx)],
        setSelect: [plot => { if (plot.select.width > 0) this.isPart = true; }] },
    }, this.table(), this.host);
    this.showLegend(null);
  }

  table() {
    const { at, live, rss, bytes: allocated } = this.points;
    // Two looks may be some milliseconds apart, as when a page opens: a rate between them says nothing.
    let from = 0;
    const rate = at.map((t, i) => {
      while (from + 1 < i && t - at[from + 1] >= 0.25) ++from;
      return t <= at[from] ? null : Math.max(0, (allocated[i] - allocated[from]) / (t - at[from]));
    });
    return [at, live, rss, rate];
  }

  begin(history) {
    this.points = { at: history.at, live: history.live, rss: history.rss, bytes: history.allocated_bytes };
    this.draw();
  }

  /// False: there are so many points that a thinner history is better.
  add(state) {
    const { at, live, rss, bytes: allocated } = this.points;
    if (at.length > 0 && state.at <= at[at.length - 1]) return true;
    at.push(state.at);
    live.push(state.totals.live);
    rss.push(state.memory?.rss ?? null);
    allocated.push(state.totals.allocated_bytes);
    this.marks = state.marks;
    this.isOver = state.process.state !== "running";
    this.draw();
    return at.length < 9000;
  }

  draw() {
    // While a part is looked at, it stays.
    this.plot.setData(this.table(), !this.isPart);
    if (this.isPart) this.plot.redraw();
    this.showLegend(this.plot.cursor.idx);
  }

  showLegend(at) {
    const data = this.plot?.data ?? [[], [], [], []], i = at ?? data[0].length - 1;
    // The last moment of a process that has ended is without RSS: the last one known stands for it.
    const rss = at == null ? data[2].findLast(v => v != null) : data[2][i], rate = at == null && this.isOver ? null : data[3][i];
    const parts = [["live", "live", data[1][i], bytes], ["rss", "RSS", rss, bytes], ...(this.hasRate ? [["rate", "allocated", rate, v => bytes(v) + "/s"]] : [])];
    this.legend.replaceChildren(...(at != null && data[0][i] ? [clock(data[0][i])] : []), ...parts.map(([name, label, value, show]) => {
      const span = document.createElement("span"), key = document.createElement("i");
      key.style.background = colour(name);
      span.append(key, `${label} ${value == null ? "–" : show(value)}`);
      return span;
    }));
  }
}
