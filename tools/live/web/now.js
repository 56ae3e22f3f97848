// What happens now: four figures, the time line, and tables of size classes, threads, and what each thread does in each class.
import { addressChanged } from "./address.js";
import { $, choice, press, text } from "./dom.js";
import { arenasOfPython, bytes, clock, count, duration, exact, exactBytes, round, several, signed, timesLive, whenPeaked, withError } from "./format.js";
import { Table } from "./table.js";
import { Timeline } from "./timeline.js";

const range = size => (size === undefined ? "" : `≤ ${round(bytes(size))}`);
/// At 800 pixels the table of size classes needs no scrolling sideways.
const widthFor = title => (title.length > 9 ? "minmax(94px,1fr)" : "minmax(72px,1fr)");
const figure = (key, title, about, show = count, precise = exact) => ({ key, title, about, width: widthFor(title), value: row => row[key], text: row => show(row[key]), tip: row => precise(row[key]) });
const byteFigure = (key, title, about) => figure(key, title, about, bytes, exactBytes);
const perSecond = { key: "rate", title: "allocs/s", about: "Allocations per second, since the last figures", width: widthFor("allocs/s"), value: row => row.rate, text: row => (row.rate == null ? "–" : count(row.rate)) };
const net = {
  ...byteFigure("net", "net", "Allocated less freed by this thread. Negative: it frees what others allocate"),
  mood: row => (row.net < 0 ? "shrank" : ""), text: row => bytes(row.net),
  tip: row => exactBytes(row.net) + (row.net < 0 ? "\nThis thread frees more than it allocates: blocks that other threads allocated." : ""),
};

const threadName = { key: "name", title: "thread", left: true, width: "minmax(150px,1.6fr)", value: row => row.name, text: row => row.name,
  mood: row => (row.state === "alive" ? "" : "faint"), tip: row => (row.state === "others" ? "Threads that have ended and whose place others have taken" : `began ${clock(row.began)}${row.ended ? ", ended " + clock(row.ended) : ""}`) };
const threadId = { key: "id", title: "id", left: true, width: "80px", value: row => row.id, text: row => (row.id ? String(row.id) : "") };

let most = 1;
const tables = {
  classes: {
    columns: [
      { key: "largest", title: "block size", left: true, width: "minmax(84px,.9fr)", value: row => row.largest, text: row => range(row.largest), tip: row => exactBytes(row.largest) },
      { ...byteFigure("live", "live", "Bytes of blocks of this size that are live"), share: row => row.live / most },
      byteFigure("peak", "peak", "Bytes of this size that were live at one moment: never more than there were. The most of them with a sampling interval of 1; otherwise perhaps less, by what each thread allocates between two samples and 16 KiB for each thread"), figure("blocks", "live blocks"), perSecond, figure("allocations", "allocations"), byteFigure("allocated_bytes", "allocated"), figure("frees", "frees"), byteFigure("freed_bytes", "freed"),
    ],
    sort: { key: "live", falls: true }, key: row => row.largest,
  },
  threads: {
    columns: [threadName, threadId,
      { key: "state", title: "state", left: true, width: "72px", value: row => row.state, text: row => row.state, mood: row => (row.state === "alive" ? "" : "faint") },
      net, byteFigure("peak", "peak", "The most that this thread had allocated beyond what it had freed, since the peak began; less by 16 KiB at most"), perSecond, figure("allocations", "allocations"), byteFigure("allocated_bytes", "allocated"),
      { key: "rounding", title: "rounding", about: "How much more was allocated than asked for", width: "minmax(70px,.7fr)", value: row => row.rounding, text: row => (row.rounding == null ? "–" : (row.rounding * 100).toFixed(1) + " %") },
      figure("frees", "frees", "Frees by this thread, whoever allocated"), byteFigure("freed_bytes", "freed", "Freed by this thread, whoever allocated")],
    sort: { key: "allocated_bytes", falls: true }, key: row => row.slot,
  },
  cells: {
    columns: [threadName, threadId,
      { key: "largest", title: "block size", left: true, width: "110px", value: row => row.largest, text: row => range(row.largest) },
      net, figure("allocations", "allocations"), byteFigure("allocated_bytes", "allocated"), figure("frees", "frees"), byteFigure("freed_bytes", "freed")],
    sort: { key: "allocated_bytes", falls: true }, key: row => row.slot * 1000 + row.largest,
  },
  meters: {
    columns: [
      { key: "name", title: "allocator", left: true, width: "minmax(150px,2fr)", value: row => row.name, text: row => row.name || "(no name)", mood: row => (row.open ? "" : "faint"), tip: row => (row.open ? "" : "It has ended: its last figures") },
      { ...byteFigure("in_use", "in use", "Bytes of the blocks in use as the allocator rounds them, where it tells; otherwise as asked for"), share: row => row.in_use / most }, byteFigure("peak", "peak", "The most that was in use at one moment"),
      figure("blocks", "blocks in use"), figure("allocations", "allocations"), byteFigure("total_bytes", "asked for", "Bytes of all allocations as asked for, without rounding: “in use” can be more"), figure("deallocations", "deallocations"), figure("failures", "failures", "Requests that it did not serve")],
    sort: { key: "in_use", falls: true }, key: row => row.number,
  },
};

const named = (columns, row) => Object.fromEntries(columns.map((name, i) => [name, row[i]]));
const counters = ["allocations", "allocated_bytes", "frees", "freed_bytes", "requested_bytes"];

/// The row with what it has counted beyond an earlier one.
const since = (row, before) => (before ? { ...row, ...Object.fromEntries(counters.filter(name => name in row).map(name => [name, row[name] - before[name]])) } : row);
const threadKey = thread => `${thread.slot} ${thread.began}`;

export class NowView {
  constructor(connection) {
    this.connection = connection;
    this.timeline = new Timeline($("timeline"), $("legend"));
    choice($("table-kind"), "kind", kind => this.show(kind));
    $("table-search").addEventListener("input", event => this.searched(event.target.value));
    $("from-now").addEventListener("click", () => this.countFromNow().catch(() => {}));
    $("from-start").addEventListener("click", () => this.countFrom(null));
    this.show("classes");
  }

  get search() { return $("table-search"); }
  refresh() {}

  get parameters() { return { table: this.kind === "classes" ? "" : this.kind, sort: this.table.parameters.sort, find: $("table-search").value }; }

  use({ table, find, sort }) {
    $("table-search").value = find ?? "";
    this.show(Object.hasOwn(tables, table ?? "") ? table : "classes");
    this.table.use({ sort });
  }

  searched(words) {
    this.table.search(words);
    this.countRows();
    addressChanged();
  }

  show(kind) {
    this.kind = kind;
    press($("table-kind"), "kind", kind);
    addressChanged();
    this.table?.end();
    const { columns, sort, key } = tables[kind];
    this.table = new Table($("table"), { columns, sort: { ...sort }, key, empty: "loading" });
    this.table.search($("table-search").value);
    $("table").setAttribute("aria-label", kind);
    this.cellsAt = -Infinity;
    if (this.state) this.fillTable();
  }

  /// Only for this page: others, and the program, go on as before.
  async countFromNow() {
    if (!this.state) return;
    const state = this.state, cells = await this.connection.get("/api/cells");
    this.countFrom({ at: state.at, classes: new Map(state.classes.map(row => [row[0], named(state.class_columns, row)])),
      threads: new Map(state.threads.map(row => named(state.thread_columns, row)).map(row => [threadKey(row), row])),
      cells: new Map(cells.rows.map(row => [`${row[0]} ${row[1]}`, named(cells.columns, row)])) });
  }

  countFrom(base) {
    this.base = base;
    $("from-start").hidden = !base;
    text($("from-start"), base ? `counted since ${clock(base.at)} · show all` : "");
    this.cellsAt = -Infinity;
    if (this.state) this.fillTable();
  }

  async begin() {
    this.timeline.begin(await this.connection.get("/api/history", { most: 4000 }));
  }

  set(state, isSeen) {
    this.before = this.state?.at < state.at ? this.state : this.before;
    this.state = state;
    $("meters-kind").hidden = state.meters.length === 0;
    this.timeline.showRate(state.process.has_probe);
    if (!this.timeline.add(state)) this.begin();
    if (!isSeen) return;
    this.fillTiles();
    this.fillTable();
  }

  /// Seconds since the figures before; 0: there are none, or the process has ended and has no rates.
  get span() {
    return this.before && this.state.process.state === "running" ? this.state.at - this.before.at : 0;
  }

  fillTiles() {
    const { totals: t, process: p, memory: m } = this.state, b = this.before, span = this.span;
    const isWhole = p.counts_from_start || !p.has_probe;
    text($("live-title"), isWhole ? "live" : "change of live since counting began");
    const isEstimate = p.is_of_samples && !(p.samples_all && p.lost_samples === 0);
    text($("live"), isEstimate ? withError(Math.max(0, t.live), p.live_error) : isWhole ? bytes(t.live) : signed(t.live, bytes));
    text($("live-more"), !p.has_probe ? "with what threads keep for their next requests" : `${count(t.live_blocks)} ${t.live_blocks === 1 ? "block" : "blocks"}${t.live_rounding == null || t.live <= 0 ? "" : ` · ${(t.live_rounding / t.live * 100).toFixed(1)} % rounding`}`);
    text($("rss"), m ? bytes(m.rss) : "–");
    text($("rss-more"), m ? [isWhole ? timesLive(m.rss, t.live) : "", m.pss ? `PSS ${bytes(m.pss)}` : "", m.swap ? `swap ${bytes(m.swap)}` : "", m.python_arenas > 0 ? `Python’s arenas about ${bytes(m.python_arenas)}` : ""].filter(Boolean).join(" · ") : "the process is gone");
    $("rss").parentNode.title = arenasOfPython(m);
    text($("rate"), span > 0 ? bytes((t.allocated_bytes - b.totals.allocated_bytes) / span) + "/s" : "–");
    text($("rate-more"), span > 0 ? `${count((t.allocations - b.totals.allocations) / span)} allocations/s` : `${count(t.allocations)} allocations in all`);
    text($("peak"), isEstimate ? `≥ ${bytes(p.peak)}` : bytes(p.peak));
    text($("peak-more"), p.peak_at ? `${clock(p.peak_at)} · ${p.state === "running" ? (isEstimate ? `${duration(Math.max(0, this.state.at - p.peak_at))} ago` : whenPeaked(this.state.at - p.peak_at, t.live, p.peak)) : duration(Math.max(0, p.peak_at - p.started)) + " after the start"}` : "");
    $("peak").parentNode.title = isEstimate ? "What was certainly live: estimates go up and down where nothing does, and the highest of many is far above the truth" : p.peak_grain === 0 ? "Exact: the sampling interval has been 1 since the peak began" : `To ${bytes(p.peak_grain)} for each thread, either way; exact where the sampling interval is 1 since the peak began`;
  }

  fillTable() {
    if (this.kind === "cells") this.fetchCells();
    else this.showRows({ classes: () => this.classRows(), threads: () => this.threadRows(), meters: () => this.meterRows() }[this.kind]());
  }

  showRows(rows) {
    this.table.empty = this.state.process.state === "running" ? "no calls yet" : "no calls";
    this.table.set(rows);
    this.countRows();
  }

  countRows() {
    const { shown, rows } = this.table;
    text($("table-count"), rows.length === 0 ? "" : shown.length === rows.length ? several(rows.length, "row") : `${exact(shown.length)} of ${exact(rows.length)} rows`);
  }

  classRows() {
    const old = new Map(this.before?.classes.map(row => [row[0], row[1]])), span = this.span;
    const rows = this.state.classes.map(row => {
      const r = named(this.state.class_columns, row), counted = since(r, this.base?.classes.get(r.largest));
      return { ...counted, live: r.allocated_bytes - r.freed_bytes, blocks: r.allocations - r.frees, rate: span > 0 ? (r.allocations - (old.get(r.largest) ?? 0)) / span : null };
    });
    most = Math.max(1, ...rows.map(row => row.live));
    return rows;
  }

  meterRows() {
    const rows = this.state.meters.map(row => named(this.state.meter_columns, row)).map(row => ({ ...row, blocks: row.allocations - row.deallocations }));
    most = Math.max(1, ...rows.map(row => row.in_use));
    return rows;
  }

  threadRows() {
    const old = new Map(this.before?.threads.map(row => [row[0], row[7]])), span = this.span;
    return this.state.threads.map(row => {
      const r = named(this.state.thread_columns, row);
      if (r.state === "others") r.name = `ended threads (${exact(this.state.process.threads_folded)})`;
      const counted = since(r, this.base?.threads.get(threadKey(r)));
      return { ...counted, net: r.allocated_bytes - r.freed_bytes, rounding: counted.allocated_bytes > 0 ? 1 - counted.requested_bytes / counted.allocated_bytes : null,
        rate: span > 0 ? Math.max(0, r.allocations - (old.get(r.slot) ?? 0)) / span : null };
    });
  }

  /// A thousand times as much as the rest: not more often than once in two seconds.
  async fetchCells() {
    if (this.isFetching || performance.now() - this.cellsAt < 2000) return;
    this.isFetching = true;
    try {
      const threads = new Map(this.threadRows().map(row => [row.slot, row]));
      const answer = await this.connection.get("/api/cells");
      const rows = answer.rows.map(row => {
        const r = named(answer.columns, row), t = threads.get(r.slot);
        // The slot may have gone to another thread since.
        const before = this.base?.threads.has(threadKey(t ?? {})) ? this.base.cells.get(`${r.slot} ${r.largest}`) : null;
        return { ...since(r, before), name: t?.name ?? "", id: t?.id ?? 0, state: t?.state ?? "", began: t?.began, ended: t?.ended, net: r.allocated_bytes - r.freed_bytes };
      });
      if (this.kind === "cells") this.showRows(rows);
    } catch (trouble) {
      if (this.kind === "cells") this.table.say(`not loaded: ${trouble.message}`);
    } finally {
      this.isFetching = false;
      this.cellsAt = performance.now();
    }
  }

  seen() {
    if (!this.state) return;
    this.fillTiles();
    this.fillTable();
    this.timeline.draw();
  }

  restyle() { this.timeline.restyle(); this.timeline.draw(); }
}
