// Why RSS is what it is: one bar, what its parts are, the heap's size classes, the mappings.
import { addressChanged } from "./address.js";
import { $, choice, element, press, text } from "./dom.js";
import { arenasOfPython, bytes, clock, count, exact, exactBytes, percent, round, several } from "./format.js";
import { Table } from "./table.js";

const parts = {
  requested: ["asked for by the program", "What the live blocks were asked for.", "blocks"],
  rounding: ["rounding", "What the live blocks are longer than asked for: in each size class the share that all its allocations had.", "blocks"],
  outside: ["blocks, and free ones that threads keep", "Which of them are the program's is known with the probe only.", "blocks"],
  thread_caches: ["free, kept by threads", "Freed blocks that threads keep for their next requests, and blocks on their way back.", "kept"],
  free_in_spans: ["free, beside blocks in use", "Free room in spans of which other blocks are in use: it comes back when these are freed. Much of it is fragmentation; below is where.", "kept"],
  free_kept: ["free pages, kept", "Free pages that the heap has not given back yet. They go back with time.", "kept"],
  lazily_freed: ["lazily freed", "Given back to the system, which takes it when it needs it (MADV_FREE).", "kept"],
  records: ["the heap's own records", "Of its spans, of pages and of threads; about.", "kept"],
  other_anonymous: ["other anonymous memory", "", "other"],
  stacks: ["stacks", "Of the threads that are known.", "other"],
  files: ["program and libraries", "Code and data that are mapped from files; pages that other processes share count here too.", "files"],
  shared: ["shared memory", "Mapped by more than one process, or to be; the probe's figures are among it.", "files"],
};
const aboutRest = {
  heap: "What the program maps by itself, heaps of its own among it, and libraries' data.",
  probe: "What malloc keeps for itself (freed blocks, fragmentation, headers, its records) and what the program maps by itself, heaps of its own among it. This malloc does not say how much it keeps; libheapwright says so.",
};

const column = (key, title, about, show = bytes, more = {}) => ({ key, title, about, width: "minmax(84px,1fr)", value: row => row[key], text: row => show(row[key]), tip: row => (show === bytes ? exactBytes(row[key]) : exact(row[key])), ...more });
let most = 1;
const tables = {
  mappings: {
    columns: [
      { key: "label", title: "mapped", left: true, name: true, width: "minmax(260px,4fr)", value: row => row.label, text: row => row.label, tip: row => row.name },
      { key: "kind", title: "kind", left: true, width: "minmax(118px,.9fr)", value: row => row.kind, text: row => row.kind, mood: () => "faint" },
      column("rss", "RSS", "In memory", bytes, { share: row => row.rss / most }), column("pss", "PSS", "In memory, shared pages divided by those who share them"),
      column("private_dirty", "private dirty", "Written to, and nobody else's", bytes, { width: "minmax(92px,1fr)" }), column("swap", "swapped"), column("size", "mapped", "Address space"),
      column("count", "mappings", "", count, { width: "92px" })],
    sort: { key: "rss", falls: true }, key: row => row.kind + row.name,
  },
  classes: {
    columns: [
      { key: "block_bytes", title: "block size", left: true, width: "minmax(96px,.9fr)", value: row => row.block_bytes, text: row => round(bytes(row.block_bytes)), tip: row => exactBytes(row.block_bytes) },
      column("free", "free in spans", "Beside blocks in use", bytes, { share: row => row.free / most }),
      column("used", "in use", "Share of the spans that is with the program or kept by threads", percent, { tip: null }),
      column("span_bytes", "spans", "Held for blocks of this size"), column("outside_bytes", "outside", "With the program or kept by threads"), column("outside", "blocks outside", "", count)],
    sort: { key: "free", falls: true }, key: row => row.block_bytes,
  },
};
tables.jvm = {
  columns: [
    { key: "name", title: "part of the JVM", left: true, name: true, width: "minmax(200px,3fr)", value: row => row.name, text: row => row.name },
    column("committed", "committed", "What the JVM may use of its address space; it need not be in memory", bytes, { share: row => row.committed / most }),
    column("mapped", "mapped", "Of that, what it has mapped itself: no malloc knows it"), column("by_malloc", "by malloc", "Of that, what it has asked malloc for: Where has the call stacks"),
    column("reserved", "reserved", "Address space")],
  sort: { key: "committed", falls: true }, key: row => row.name,
};
const named = (columns, row) => Object.fromEntries(columns.map((name, i) => [name, row[i]]));

/// The advice has code between backticks.
const shownFinding = ({ text, fields, advice, page }) => element("li", {}, `${text}. See `, ...fields.flatMap((field, i) => [i > 0 ? ", " : "", element("code", {}, field)]), ` of the recipe (${page}). `,
  ...advice.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part)));

export class MemoryView {
  constructor(connection) {
    this.connection = connection;
    this.kind = "mappings";
    choice($("memory-kind"), "kind", kind => this.choose(kind));
    $("memory-search").addEventListener("input", event => this.searched(event.target.value));
  }

  get search() { return $("memory-search"); }
  get parameters() { return { table: this.kind === "mappings" ? "" : this.kind, sort: this.table?.parameters.sort, find: $("memory-search").value }; }

  use({ table, find, sort }) {
    $("memory-search").value = find ?? "";
    this.addressed = { sort };  // until there is a table
    if (Object.hasOwn(tables, table ?? "")) press($("memory-kind"), "kind", this.kind = table);
  }

  choose(kind) {
    this.kind = kind;
    this.table?.end();
    this.table = null;
    this.fillTable();
    addressChanged();
  }

  searched(words) {
    this.table?.search(words);
    addressChanged();
  }

  async refresh() {
    this.at = performance.now();
    try {
      this.show(await this.connection.get("/api/memory"));
    } catch (trouble) {
      if (!this.answer) text($("memory-note"), `not loaded: ${trouble.message}`);
      else if (!trouble.isLost) text($("memory-note"), trouble.message);
    }
  }

  show(answer) {
    this.answer = answer;
    $("memory-what").hidden = answer.at == null;
    if (answer.at == null) return text($("memory-note"), answer.running ? "The process's mappings cannot be read (/proc/PID/smaps): as the same user or as root they can." : "The program has ended, and nobody had looked at its memory before; --save keeps a look at it.");
    const shown = answer.parts.filter(([, size]) => size > 0);
    const whole = shown.reduce((sum, [, size]) => sum + size, 0);
    text($("memory-note"), [`RSS ${bytes(answer.rss)} at ${clock(answer.at)}${answer.running ? "" : ", when the mappings were last looked at (every ten seconds, or less often)"}`, answer.not_resident > 0 ? `${bytes(answer.not_resident)} of the heap is not in memory: never touched, or swapped out` : "",
      answer.swap > 0 ? `${bytes(answer.swap)} swapped out` : "", answer.huge > 0 ? `${bytes(answer.huge)} in huge pages` : ""].filter(Boolean).join(" · "));
    $("memory-bar").replaceChildren(...shown.map(([key, size]) => element("div", { className: `part ${parts[key][2]} of-${key}`, title: `${parts[key][0]}: ${exactBytes(size)}`, style: `flex-grow: ${size / whole}` })));
    const aboutOf = key => (key !== "other_anonymous" ? parts[key][1] : answer.heap ? aboutRest.heap : aboutRest.probe);
    $("memory-parts").replaceChildren(...shown.map(([key, size]) => element("tr", {}, element("td", {}, element("i", { className: `part ${parts[key][2]} of-${key}` })), element("td", {}, parts[key][0]),
      element("td", { className: "figure", title: exactBytes(size) }, bytes(size)), element("td", { className: "figure quiet" }, percent(size / whole)), element("td", { className: "quiet" }, aboutOf(key)))),
    ...(answer.not_resident > 0 ? [element("tr", {}, element("td"), element("td", {}, "less: not in memory"), element("td", { className: "figure" }, bytes(-answer.not_resident)), element("td"), element("td", { className: "quiet" }, "What the heap holds of the above, but was never touched, or is swapped out."))] : []));
    const h = answer.heap;
    text($("memory-heap"), h ? `libheapwright holds ${bytes(h.mapped)} of address space: ${bytes(h.spans)} in spans, ${bytes(h.large)} in large blocks, ${bytes(h.free_resident)} free and not given back, ${bytes(h.free_decommitted)} free and given back or never touched; ${bytes(h.metadata_resident)} in memory for its records, ${bytes(h.metadata)} reserved; ${bytes(h.decommitted_total)} given back so far.` : "");
    text($("memory-jvm"), !answer.jvm ? "" : answer.jvm.length > 0 ? "The JVM keeps an account of its own (Native Memory Tracking): below. What it has mapped and touched is a part of other anonymous memory." : "A JVM: with -XX:NativeMemoryTracking=summary it says here what it has for Java objects, classes, compiled code and threads. That costs it some per cent.");
    text($("memory-python"), answer.python_arenas > 0 ? `${arenasOfPython(answer)} What was touched of them is a part of other anonymous memory.` : "");
    $("memory-findings").replaceChildren(...answer.findings.map(shownFinding));
    const has = { mappings: true, classes: h, jvm: answer.jvm?.length > 0 };
    for (const button of $("memory-kind").children) button.hidden = !has[button.dataset.kind];
    $("memory-kind").hidden = !has.classes && !has.jvm;
    if (!has[this.kind]) press($("memory-kind"), "kind", this.kind = "mappings");
    this.fillTable();
  }

  fillTable() {
    if (!this.answer?.mappings) return;
    const { columns, sort, key } = tables[this.kind];
    this.table ??= new Table($("memory-table"), { columns, sort: { ...sort }, key });
    if (this.addressed) this.table.use(this.addressed);
    this.addressed = null;
    this.table.search($("memory-search").value);
    const rows = this.kind === "mappings" ? this.answer.mappings.map(row => {
      const r = named(this.answer.mapping_columns, row);
      return { ...r, label: r.name || (r.kind === "stacks" ? "stacks of threads" : "anonymous memory") };
    }) : this.kind === "jvm" ? this.answer.jvm.map(row => {
      const r = named(this.answer.jvm_columns, row);
      return { ...r, mapped: Math.max(0, r.committed - r.by_malloc) };
    }) : this.answer.classes.map(row => {
      const r = named(this.answer.class_columns, row), outside_bytes = r.outside * r.block_bytes;
      return { ...r, outside_bytes, free: Math.max(0, r.span_bytes - outside_bytes), used: Math.min(1, outside_bytes / r.span_bytes) };
    });
    most = Math.max(1, ...rows.map(row => ({ mappings: row.rss, classes: row.free, jvm: row.committed })[this.kind]));
    this.table.set(rows);
    text($("memory-count"), several(rows.length, "row"));
  }

  set_state(state, isSeen) {
    const isOver = state.process.state !== "running", hasEnded = isOver && !this.isOver;
    this.isOver = isOver;
    if (isSeen && (hasEnded || (!isOver && performance.now() - (this.at ?? 0) > 5000))) this.refresh();
  }

  seen() { this.refresh(); }
  restyle() {}
}
