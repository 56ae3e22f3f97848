// Where memory is allocated: the flame graph and the top sites, of what is live, was allocated, or lived short; or of how that has changed since a mark.
import { addressChanged, changedFrom, onlyKnown } from "./address.js";
import { note, snapshot } from "./connection.js";
import { $, choice, element, press, text } from "./dom.js";
import { Flame, words } from "./flame.js";
import { aboutCount, bytes, count, duration, exact, exactBytes, percent, several, round, signed, withError } from "./format.js";
import { SiteHistory } from "./site_history.js";
import { Source } from "./source.js";
import { GivenAdvice, placeText, showStack, siteColumns, withPlaces } from "./sites.js";
import { Table } from "./table.js";

const kindsOf = advice => [...new Set(advice.map(one => one.kind))].join(", ");
const figure = (key, title, show = bytes, more = {}) => ({ key, title, width: "minmax(84px,.3fr)", value: row => row[key] ?? 0, text: row => (row[key] == null ? "–" : show(row[key])), tip: row => (row[key] == null ? "" : exact(row[key])), ...more });

/// How exact stacks are, and what that costs.
function samplingOf(p) {
  if (p.interval === 0) return ["no block is sampled: call stacks are not known"];
  if (p.interval === 1 && !p.samples_all) return ["every block now; what was allocated before is an estimate"];
  if (p.interval === 1) return [p.lost_samples > 0 ? "every block, but those that were lost" : "every block: exact"];
  // A program that mostly waits: a share of its little time would say little.
  const waits = p.sampling_share > 0.012 && p.sampling_share_of_time !== null;
  const taken = waits ? `${(1000 * p.sampling_share_of_time).toFixed(2)} ms in a second` : `${percent(p.sampling_share)} of the program's processor time`;
  const cost = p.interval_adapts && p.sampling_share !== null ? `, which takes ${taken}` : "";
  return [`a sample every ${round(bytes(p.interval))}${cost}`];
}

/// Samples were lost: a figure without an error is not exact.
let hasLost = false;

/// With its error: columns like `live_bytes` have a `live_bytes_error`.
const estimated = (key, title, more = {}) => figure(key, title, bytes, { width: "minmax(128px,.3fr)", text: row => withError(row[key], row[key + "_error"]),
  tip: row => exactBytes(row[key]) + (row[key + "_error"] > 0 ? `, ±${exactBytes(row[key + "_error"])} (95 of 100 estimates are within)` : hasLost ? "" : ", exact"), ...more });

/// Of how many blocks these bytes are: an estimate where the bytes are.
const estimatedCount = (key, title, bytesKey, more) => figure(key, title, count, { text: row => aboutCount(row[key], row[bytesKey], row[bytesKey + "_error"]), ...more });

/// What is asked for when the page opens. The keys are those of /api/stacks, and of the page's address.
const usual = { value: "live", since: "", until: "", from: "root", by: "function", libraries: "shown", interpreter: "hidden", threads: "" };

/// Names that differ in numbers alone are one pattern: "io_thd_*".
function patternsOf(threads) {
  const names = new Map();
  for (const [name] of threads) {
    const pattern = name.replace(/[0-9]+/g, "*");
    names.set(pattern, [...(names.get(pattern) ?? []), name]);
  }
  return [...names].filter(([, all]) => all.length > 1);
}

export class WhereView {
  constructor(connection) {
    // `question`: what is shown; `wanted`: what has been asked for.
    Object.assign(this, { connection, question: { ...usual }, wanted: { ...usual }, known: "", knownThreads: "", sampling: [] });
    // Each below what it belongs to: what was clicked on must not move.
    this.source = new Source($("flame-source"), connection);
    this.siteSource = new Source($("site-source"), connection);
    this.siteHistory = new SiteHistory({ chosen: (since, until) => this.ask(since === null ? { since: "", until: "" } : { since: `@${since.toFixed(1)}`, until: `@${until.toFixed(1)}` }),
      picked: name => this.findSite(name) });
    this.flame = new Flame($("flame"), { describe: node => this.describe(node), pick: node => this.picked(node),
      zoomed: isZoomed => {
        $("flame-reset").hidden = !isZoomed;
        addressChanged();
      } });
    choice($("flame-value"), "value", value => this.ask({ value }));
    $("since").addEventListener("change", event => this.ask({ since: event.target.value, until: "" }));
    for (const key of ["from", "by", "threads"]) $(key).addEventListener("change", event => this.ask({ [key]: event.target.value }));
    $("own-code").addEventListener("change", event => this.ask({ libraries: event.target.checked ? "folded" : "shown" }));
    $("interpreter").addEventListener("change", event => this.ask({ interpreter: event.target.checked ? "shown" : "hidden" }));
    $("flame-refresh").addEventListener("click", () => this.refresh());
    $("flame-reset").addEventListener("click", () => this.flame.zoom(null));
    $("flame-search").addEventListener("input", event => this.searched(event.target.value));
    $("sites-search").addEventListener("input", event => this.searchSites(event.target.value));
    this.makeTable();
  }

  get search() { return $("flame-search"); }

  picked(node) {
    text($("flame-detail"), node ? this.describe(node).replaceAll("\n", " · ") : "");
    this.source.show(node?.place);
  }

  pickedSite(row) {
    showStack($("site-stack"), row);
    this.siteSource.show(row.frames[row.site]);
  }

  errorOfGrowth(node) { return node.error > 0 ? ` ±${this.show(node.error)}` : ""; }
  total(node) { return withError(node.total, node.error, v => this.show(v)); }
  show(v) { return this.question.value === "count" ? count(v) + " blocks" : bytes(v); }

  makeTable() {
    const search = $("sites-search").value;
    this.sites?.end();
    const isOfPeak = this.question.value === "peak";
    const atPeak = isOfPeak ? [estimated("at_peak", "at the peak", { about: "Live when the process was at its peak", share: row => row.at_peak / this.mostAtPeak })] : [];
    const grown = this.question.since ? [figure("grown", "grown", v => signed(v, this.question.value === "count" ? count : bytes), { ...(this.question.since === "other" ? { value: row => Math.abs(row.grown) } : {}), mood: row => (Math.abs(row.grown) <= (row.value_error ?? 0) ? "faint" : row.grown > 0 ? "grew" : "shrank"), about: "Since that moment, or more than in that run; faint where the error is larger than the change", width: "minmax(176px,.3fr)", text: row => signed(row.grown, v => this.show(v)) + (row.value_error > 0 ? ` ±${this.show(row.value_error)}` : "") })] : [];
    const hasAdvice = this.advice?.isEmpty === false;
    const advised = hasAdvice ? [{ key: "kind", title: "advice", left: true, width: "minmax(150px,.5fr)", about: "What the kit could do: choose the row for more", value: row => kindsOf(row.advice), text: row => kindsOf(row.advice), tip: row => row.advice.map(one => one.seen).join("\n") }] : [];
    this.sites = new Table($("sites"), {
      columns: [...siteColumns, ...advised, ...grown, ...atPeak, estimated("live_bytes", "live", { share: row => row.live_bytes / this.most }), ...(isOfPeak ? [] : [estimatedCount("live_blocks", "live blocks", "live_bytes", { width: "minmax(102px,.3fr)" })]), estimated("allocated_bytes", "allocated"), estimatedCount("allocations", "allocations", "allocated_bytes", { width: "minmax(106px,.3fr)" }),
        // With growth, at the peak, and with advice, names need the room more.
        ...((this.question.since && this.question.value !== "short") || isOfPeak ? [] : [{ ...figure("short_share", "short-lived", percent, { width: "minmax(100px,.3fr)" }), about: "Share of the allocations that lived less than a millisecond", tip: row => `${exact(row.short_lived)} of ${exact(row.allocations)} allocations lived less than a millisecond` }]),
        ...(isOfPeak ? [] : [figure("age", "first seen", s => duration(s) + " ago", { tip: null, value: row => -row.age, width: "minmax(102px,.3fr)" })]), figure("samples", "samples", count, { width: "minmax(86px,.3fr)", about: "Blocks really looked at; few make the figures rough" }),
        ...(this.question.since || isOfPeak || hasAdvice ? [] : [figure("stacks", "stacks", count, { width: "minmax(76px,.3fr)", about: "Call stacks of this site: they differ further out" })])],
      sort: { key: this.question.since ? "grown" : { live: "live_bytes", peak: "at_peak", allocated: "allocated_bytes", count: "allocations", short: "short_share" }[this.question.value], falls: true },
      key: row => row.id, pick: row => this.pickedSite(row), empty: "",
    });
    this.sites.hasAdvice = hasAdvice;
    if (this.addressed) this.sites.use(this.addressed);
    this.sites.search(search);
  }

  /// For the page's address.
  get parameters() {
    return { ...changedFrom(usual, this.question), ...this.sites.parameters, find: $("flame-search").value, find_site: $("sites-search").value, zoom: this.flame.zoomPath };
  }

  use(parameters) {
    Object.assign(this.wanted, onlyKnown(usual, parameters));
    $("flame-search").value = parameters.find ?? "";
    $("sites-search").value = parameters.find_site ?? "";
    this.flame.words = words(parameters.find ?? "");
    this.flame.zoomPath = parameters.zoom ?? "";
    this.showControls(this.wanted);
    this.addressed = parameters;  // until there are rows
    this.makeTable();
  }

  ask(change) {
    Object.assign(this.wanted, change);
    this.showControls(this.wanted);
    this.refresh();
  }

  async refresh() {
    const asked = this.asked = { ...this.wanted }, { value, since, until, threads } = asked;
    this.at = performance.now();
    try {
      this.advice ??= new GivenAdvice((await this.connection.get("/api/advice")).advice);
      const [tree, sites] = await Promise.all([
        this.connection.get("/api/stacks", asked),
        this.connection.get("/api/sites", { value, since, until, threads, most: 1000 })]);
      if (asked !== this.asked) return;
      this.showHistory();
      const isNewTable = value !== this.question.value || since !== this.question.since;
      this.question = asked;
      addressChanged();
      if (isNewTable || !this.sites.hasAdvice !== this.advice.isEmpty) this.makeTable();
      this.set(tree, sites);
    } catch (trouble) {
      if (asked === this.asked) this.failed(trouble);
    }
  }

  /// What was shown stays, and the controls say what that is.
  failed(trouble) {
    const hasAsked = JSON.stringify(this.wanted);
    this.wanted = { ...this.question };
    this.showControls(this.question);
    if (!this.flame.data && !trouble.isLost && JSON.stringify(this.wanted) !== hasAsked) {
      // The address asked for it.
      note("address", `This page's address asks for what is not there (${trouble.message}). Shown is what the view begins with.`);
      this.refresh();
    } else if (!this.flame.data) {
      this.flame.say(`not loaded: ${trouble.message}`);
      this.sites.say("");
    } else if (!trouble.isLost) {
      text($("flame-note"), trouble.message);
      setTimeout(() => this.note(), 5000);
    }
  }

  findSite(name) {
    $("sites-search").value = name;
    this.searchSites(name);
  }

  /// Not with each answer: it changes slowly, and is much.
  async showHistory() {
    const { threads } = this.wanted;
    if (this.historyAt && performance.now() - this.historyAt < 4000 && threads === this.historyOf && !this.isOver) return;
    this.historyAt = performance.now();
    this.historyOf = threads;
    const history = await this.connection.get("/api/site_history", { threads }).catch(() => null);
    if (history && threads === this.historyOf) this.siteHistory.set(history, !this.isOver && !snapshot);
  }

  showControls(question) {
    press($("flame-value"), "value", question.value);
    // A list that does not yet have it gets it with the answer that names it.
    for (const key of ["from", "by", "threads"]) $(key).value = question[key];
    $("since").value = question.until ? "part" : question.since;
    this.siteHistory.showPart(Number(question.until && question.since.slice(1)), Number(question.until.slice(1)));
    $("own-code").checked = question.libraries === "folded";
    $("own-code").disabled = question.by === "package";
    $("interpreter").checked = question.interpreter === "shown";
  }

  /// Names of threads, those with most first. Of a program whose threads have one name there is nothing to choose.
  listThreads(threads) {
    const named = threads.filter(([name]) => name).sort((a, b) => b[1] - a[1]), known = JSON.stringify(named.map(([name]) => name).sort());
    $("threads-choice").hidden = named.length < 2 && !this.question.threads;
    if (known !== this.knownThreads && document.activeElement !== $("threads")) {
      this.knownThreads = known;
      const patterns = (snapshot ? [] : patternsOf(named)).map(([pattern, all]) => [pattern, `${pattern} (${several(all.length, "name")})`]);
      const all = [["", "all"], ...patterns, ...named.map(([name]) => [name, name])];
      const chosen = this.question.threads;
      if (!all.some(([value]) => value === chosen)) all.push([chosen, chosen]);
      $("threads").replaceChildren(...all.map(([value, textContent]) => element("option", { value, textContent })));
    }
    $("threads").value = this.question.threads;
  }

  set(tree, sites) {
    this.listThreads(tree.threads);
    this.flame.mainModule = this.program;
    this.flame.set(tree, this.question.by === "line");
    $("interpreter-choice").hidden = !tree.has_scripts;
    this.note();
    const rows = withPlaces(sites).map(row => ({ ...row, age: sites.at - row.first, short_share: row.allocations > 0 ? row.short_lived / row.allocations : 0, advice: row.frames[row.site] ? this.advice.of(row.frames[row.site]) : [] }));
    this.most = Math.max(1, ...rows.map(row => row.live_bytes));
    this.mostAtPeak = Math.max(1, ...rows.map(row => row.at_peak));
    this.sites.empty = this.flame.whyEmpty;
    this.sites.set(rows);
    this.addressed = null;
    this.leftOut = sites.left_out;
    this.countSites();
    text($("sites-hint"), sites.hint);
    if (this.sites.chosen === null) {
      $("site-stack").hidden = true;
      this.siteSource.show(null);
    }
  }

  searchSites(words) {
    this.sites.search(words);
    this.countSites();
    addressChanged();
  }

  countSites() {
    const { rows, shown } = this.sites, left = this.leftOut;
    if (!left) return;
    const found = shown.length < rows.length ? `${exact(shown.length)} of ` : "";
    text($("sites-count"), found + (left.sites > 0 ? `the first ${exact(rows.length)}; ${exact(left.sites)} more with ${this.show(left.value)} are left out` : several(rows.length, "site")));
  }

  searched(words) {
    this.flame.search(words);
    this.note();
    addressChanged();
  }

  note() {
    const { data, root } = this.flame;
    if (!data) return;
    const parts = data.is_growth ? [`${signed(root.grown, v => this.show(v))}${this.errorOfGrowth(root)} in all; red grows, blue shrinks, grey is below the error, width is both`] : [this.total(root), ...(this.question.value === "peak" ? [] : [several(data.samples, "sample")]), ...this.sampling];
    if (data.left_out.nodes > 0) parts.push(`${exact(data.left_out.nodes)} small nodes left out (${percent(data.left_out.value / (root.total || 1))})`);
    if (this.flame.words.length > 0) parts.push(`found in ${percent(this.flame.search(this.flame.words.join(" ")))}`);
    text($("flame-note"), parts.join(" · "));
  }

  describe(node) {
    const all = this.flame.root.total || 1;
    const lines = [node.place ? placeText(node.place).replace(/ {2}.*/, "") : "all stacks"];
    if (node.place) lines.push((node.place[1] ? (node.hasLines ? `${node.place[1]} (several lines)` : `${node.place[1]}:${node.place[2]}`) : node.place[3]) + (node.place[4] ? " (inlined)" : ""));
    if (this.flame.data.is_growth) lines.push(signed(node.grown, v => this.show(v)) + this.errorOfGrowth(node));
    else lines.push(`${this.total(node)}, ${percent(node.total / all)}` + (node.own > 0 ? `; ${this.show(node.own)} right here` : ""));
    return lines.join("\n");
  }

  /// Marks may be new; what stays known stays chosen.
  set_state(state, isSeen) {
    this.program = state.process.program;
    this.flame.whyEmpty = state.process.state === "running" ? "no samples yet" : "no samples";
    this.sampling = samplingOf(state.process);
    hasLost = state.process.lost_samples > 0;
    this.siteHistory.marks = state.marks;
    this.isOver = state.process.state !== "running";
    const marks = state.marks.filter(mark => mark.can_compare);
    const known = marks.map(mark => mark.number).join();
    if (known !== this.known || $("since").options.length === 0) {
      this.known = known;
      $("since").replaceChildren(element("option", { value: "", textContent: "–" }), element("option", { value: "part", textContent: "as chosen above", hidden: true }), element("option", { value: "start", textContent: "this page's server began" }),
        ...(state.other_run ? [element("option", { value: "other", textContent: `the run in ${state.other_run}` })] : []),
        ...marks.map(mark => element("option", { value: String(mark.number), textContent: mark.name })));
      const chosen = this.wanted.until ? "part" : this.wanted.since;
      $("since").value = [...$("since").options].some(option => option.value === chosen) ? chosen : "";
    }
    if (isSeen && state.process.state === "running" && !document.hidden && performance.now() - (this.at ?? 0) > 5000) this.refresh();
  }

  seen() { this.refresh(); }
  restyle() {
    this.flame.draw();
    this.siteHistory.restyle();
  }
}
