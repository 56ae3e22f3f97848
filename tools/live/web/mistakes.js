// What the malloc has found that the program does wrong with its memory: its reports, as it has written them.
import { addressChanged } from "./address.js";
import { $, element, text } from "./dom.js";
import { clock, exact, several } from "./format.js";

/// A report: its first line says what and where, the others who did it, and who freed and allocated the block.
function shown({ at, thread, mistakes, text: lines }) {
  const [first, ...more] = lines.replace(/\n$/, "").split("\n");
  return element("article", { className: "report" },
    element("h3", {}, first.replace(/^heapwright: /, "")),
    element("div", { className: "quiet" }, `${mistakes > 1 ? several(mistakes, "time") + ", first at " : ""}${clock(at)}, thread ${thread}`),
    element("div", { className: "calls" }, ...more.map(line => element("div", { className: line.startsWith("    ") ? "" : "machinery" }, line))));
}

export class MistakesView {
  constructor(connection) {
    this.connection = connection;
    this.reports = [];
    $("mistakes-search").addEventListener("input", () => {
      this.draw();
      addressChanged();
    });
    $("mistakes-refresh").addEventListener("click", () => this.refresh());
  }

  get search() { return $("mistakes-search"); }
  get parameters() { return { find: $("mistakes-search").value }; }
  use({ find }) { $("mistakes-search").value = find ?? ""; }

  async refresh() {
    try {
      const answer = await this.connection.get("/api/mistakes");
      this.found = answer.mistakes;
      this.reports = answer.reports;
      this.draw();
    } catch (trouble) {
      if (!trouble.isLost) text($("mistakes-count"), trouble.message);
    }
  }

  draw() {
    const words = this.search.value.toLowerCase();
    const fit = this.reports.filter(report => report.text.toLowerCase().includes(words));
    const reports = words === "" ? several(this.reports.length, "report") : `${exact(fit.length)} of ${several(this.reports.length, "report")}`;
    text($("mistakes-count"), `${several(this.found, "mistake")}, ${reports}`);
    $("mistakes").replaceChildren(...fit.reverse().map(shown));
  }

  /// A report is written in pieces: it is asked for again while something may still come.
  set_state(state, isSeen) {
    const news = state.process.mistakes !== this.found || (state.process.state === "running" && performance.now() - (this.at ?? 0) > 2000);
    if (!isSeen || !news) return;
    this.at = performance.now();
    this.refresh();
  }

  seen() { this.refresh(); }
  restyle() {}
}
