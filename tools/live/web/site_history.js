// What sites have had over time, one above the other: which of them grew when. A part that is chosen by dragging is what the graph below compares.
import uPlot from "uplot";
import { snapshot } from "./connection.js";
import { $, colour, element, text } from "./dom.js";
import { bytes, clock, percent } from "./format.js";
import { placeText } from "./sites.js";
import { byteAxis, drawMarks, timeAxis } from "./timeline.js";

/// Of sites beside each other that can be told apart, on white and on black.
const hues = [212, 28, 145, 340, 265, 190, 48, 310, 100, 0];
const isDark = () => document.documentElement.classList.contains("dark");
const fillOf = i => `hsl(${hues[i % hues.length]} ${isDark() ? "45% 42%" : "62% 66%"})`;
const fillOfOthers = () => (isDark() ? "#4a525c" : "#c3cad2");

export class SiteHistory {
  /// `chosen(since, until)`: seconds since 1970; null: no part is chosen any more. `picked(row)`: a site's name was clicked.
  constructor({ chosen, picked }) {
    Object.assign(this, { host: $("site-history"), legend: $("site-history-legend"), chosen, picked, marks: [] });
    this.host.addEventListener("dblclick", () => this.choose(null, null));
    $("site-history-all").addEventListener("click", () => this.choose(null, null));
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(this.host);
  }

  size() { return { width: Math.max(this.host.clientWidth, 100), height: 153 }; }

  choose(since, until) {
    this.part = since === null ? null : [since, until];
    this.tellPart();
    this.chosen(since, until);
  }

  /// Shows what is chosen elsewhere, as in the page's address.
  showPart(since, until) {
    this.part = since ? [since, until] : null;
    this.tellPart();
  }

  tellPart() {
    $("site-history-all").hidden = !this.part;
    text($("site-history-part"), this.part ? `growth from ${clock(this.part[0])} to ${clock(this.part[1])}` : "");
    this.plot?.redraw();
  }

  /// `data`: what /api/site_history answers. `grows`: more moments will come.
  set(data, grows) {
    // What somebody drags over stands still.
    if (this.plot?.select.width > 0) return;
    this.data = data;
    // Of a moment or two there is no history; but what stands below must not move when there is one.
    $("site-history-card").hidden = !(grows || (data.at.length > 2 && data.sites.length > 0));
    this.plot?.destroy();
    this.plot = null;
    if (!$("site-history-card").hidden && this.host.clientWidth > 0) this.draw();
  }

  draw() {
    const { data } = this;
    const names = [...data.sites.map(site => (data.places[site.place] ? placeText(data.places[site.place]) : "(no stack)")), "all others"];
    // The one with most lies at the bottom. A line is drawn at the sum of all that lie below it.
    let sum = data.at.map(() => 0);
    const tops = [...data.sites.map(site => site.live), data.others].map(live => (sum = sum.map((below, t) => below + live[t])));
    this.fills = [...data.sites.map((_, i) => fillOf(i)), fillOfOthers()];
    const series = this.fills.map((fill, i) => ({ label: names[i], fill, stroke: fill, width: 0.5, points: { show: false } }));
    const rssLine = { label: "RSS", stroke: colour("rss"), width: 1.5, points: { show: false } };
    this.plot?.destroy();
    this.plot = new uPlot({
      ...this.size(), padding: [18, 24, 0, 0], cursor: { y: false, points: { show: false }, drag: { x: snapshot === null, y: false, setScale: false },
        // Dragging goes on beside the plot.
        bind: { mouseleave: (_, __, leave) => event => (event.buttons === 0 ? leave(event) : null) } },
      scales: { y: { range: (_, __, high) => [0, Math.max((high ?? 1) * 1.06, 1)] } },
      axes: [timeAxis(), { ...byteAxis(), space: 30 }],
      // The highest first, so that the others are drawn over it.
      series: [{}, ...series.toReversed(), rssLine],
      hooks: { draw: [plot => this.drawPart(plot), plot => drawMarks(plot, this.marks)], setCursor: [plot => this.showLegend(plot.cursor.idx)], setSelect: [plot => this.selected(plot)] },
    }, [data.at, ...tops.toReversed(), data.rss], this.host);
    this.names = names;
    // A snapshot has no moments to compare.
    this.host.title = snapshot ? "" : "Drag to see what has grown in a part of the time";
    this.showLegend(null);
  }

  selected(plot) {
    if (!(plot.select.width > 0)) return;
    const { left, width } = plot.select, [from, to] = [left, left + width].map(at => this.data.at[plot.posToIdx(at)]);
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (from < to) this.choose(from, to);
  }

  drawPart(plot) {
    if (!this.part) return;
    const { ctx: c, bbox: { left, top, width, height } } = plot;
    const inside = x => Math.min(Math.max(x, left), left + width), [from, to] = this.part.map(t => inside(plot.valToPos(t, "x", true)));
    c.save();
    c.fillStyle = colour("card");
    c.globalAlpha = 0.6;
    c.fillRect(left, top, from - left, height);
    c.fillRect(to, top, left + width - to, height);
    c.restore();
  }

  showLegend(at) {
    const { data } = this, t = at ?? data.at.length - 1, before = Math.max(0, t - 1);
    const seconds = data.at[t] - data.at[before], allocated = data.allocated_bytes[t] - data.allocated_bytes[before];
    const short = data.short_lived_bytes[t] - data.short_lived_bytes[before];
    const rate = seconds > 0 && allocated >= 0 ? ` · allocated ${bytes(allocated / seconds)}/s${allocated > 0 ? `, ${percent(Math.min(1, Math.max(0, short / allocated)))} short-lived` : ""}` : "";
    text($("site-history-at"), `${clock(data.at[t])}${data.rss[t] == null ? "" : ` · RSS ${bytes(data.rss[t])}`}${rate}`);
    const entry = (i, live, pick) => element(pick ? "button" : "span", pick ? { title: "Find it in the table below", onclick: pick } : {},
      element("i", { style: `background: ${this.fills[i]}` }), element("span", {}, this.names[i]), element("b", {}, bytes(live)));
    this.legend.replaceChildren(...data.sites.map((site, i) => entry(i, site.live[t], () => this.picked(this.names[i]))),
      ...(Math.max(...data.others) > 0 ? [entry(data.sites.length, data.others[t], null)] : []));
  }

  restyle() {
    if (this.data && this.plot) this.draw();
  }
}
