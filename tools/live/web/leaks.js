// Sites that keep growing.
import { addressChanged } from "./address.js";
import { $, text } from "./dom.js";
import { aboutCount, arenasOfPython, bytes, count, duration, exact, exactBytes, percent, round, several, withError } from "./format.js";
import { showStack, siteColumns, withPlaces } from "./sites.js";
import { Table } from "./table.js";

const figure = (key, title, show, about, more = {}) => ({ key, title, about, width: "minmax(88px,.3fr)", value: row => row[key], text: row => show(row[key]), tip: row => exact(row[key]), ...more });

/// Why no site is listed, as far as is known, and where else to look. `process` of the state.
function whyNone({ at, begin, sites_with_live_samples: sites, sites_judged: judged }, process) {
  const seconds = Math.max(0, at - begin), time = duration(seconds), runs = process.state === "running";
  const short = runs && seconds < 60 ? ` The program has been watched for ${time} only; a leak shows within about a minute, as a rule.` : "";
  const atPeak = "Where → At the peak has what lived at the peak.";
  // By eight samples.
  const slow = process.interval > 1 && seconds > 0 ? ` A leak slower than about ${round(bytes(8 * process.interval / seconds))} per second ${runs ? "cannot be seen yet" : "is not seen by these samples"}.` : "";
  if (sites === 0) return `No sample is live: what was allocated is freed, or no sample met it. ${atPeak}${short}`;
  const more = runs ? short || " Sampling more often (More) gives more of them." : ` A run with --sample 1 has all blocks. ${atPeak}`;
  if (judged === 0) return `None of ${several(sites, "site")} can be judged: that takes 8 live samples of a site from after the first 4 % of the time, in which a program starts.${slow}${more}`;
  return `No site keeps growing: of ${several(sites, "site")}, ${judged === 1 ? "1 has" : exact(judged) + " have"} enough live samples to be judged, and what is live was not allocated evenly over the ${time}. A leak that came in a burst, or pauses, is not listed: Where shows it as growth since a mark (Mark…).${slow}${short}`;
}

export class LeaksView {
  constructor(connection) {
    this.connection = connection;
    this.process = {};
    this.table = new Table($("leaks"), {
      columns: [...siteColumns,
        { key: "live_by_time", title: "live, by age", about: "What is live by when it was allocated: from when counting began, left, to now. A bar with a gap is longer than is shown", width: "124px", value: row => row.live_bytes, text: () => "", bars: row => row.live_by_time, tip: row => `from ${row.begin} to ${row.end}; of the first stretch ${exactBytes(row.live_by_time[0])} are live` },
        figure("bytes_per_second", "stays", v => bytes(v) + "/s", "What was allocated in the second half of the time and is live, per second", { width: "minmax(134px,.3fr)", text: row => withError(row.bytes_per_second, row.bytes_per_second_error, v => bytes(v) + "/s"), tip: row => `${exactBytes(row.bytes_per_second)}/s, ±${exactBytes(row.bytes_per_second_error)}/s (95 of 100 estimates are within)` }),
        figure("live_bytes", "live", bytes, "", { width: "minmax(134px,.3fr)", text: row => withError(row.live_bytes, row.live_bytes_error), tip: row => `${exactBytes(row.live_bytes)}, ±${exactBytes(row.live_bytes_error)} (95 of 100 estimates are within)` }), figure("live_blocks", "live blocks", count, "", { width: "minmax(112px,.3fr)", text: row => aboutCount(row.live_blocks, row.live_bytes, row.live_bytes_error) }),
        figure("overdue_bytes", "overdue", bytes, "Live for longer than 99 of 100 freed bytes of this site; all, where it has freed none", { tip: row => exactBytes(row.overdue_bytes) }),
        figure("usual_life", "usual life", v => (v > 0 ? "< " + duration(v) : "none freed"), "99 of 100 freed bytes lived no longer", { tip: null, width: "minmax(92px,.3fr)" }),
        figure("freed_share", "freed", percent, "Share of the allocations that were freed", { tip: null }),
        figure("live_samples", "samples", count, "Live blocks really looked at")],
      sort: { key: "bytes_per_second", falls: true }, key: row => row.id, pick: row => showStack($("leak-stack"), row),
      empty: "loading",
    });
    $("leaks-search").addEventListener("input", event => this.searched(event.target.value));
    $("leaks-refresh").addEventListener("click", () => this.refresh());
  }

  get search() { return $("leaks-search"); }
  get parameters() { return { ...this.table.parameters, find: $("leaks-search").value }; }

  use({ find, ...ofTable }) {
    $("leaks-search").value = find ?? "";
    this.table.use(ofTable);
    this.table.search(find ?? "");
  }

  searched(words) {
    this.table.search(words);
    addressChanged();
  }

  async refresh() {
    this.at = performance.now();
    try {
      const answer = await this.connection.get("/api/leaks");
      this.isLoaded = true;
      const time = s => new Date(s * 1000).toLocaleTimeString("en-GB");
      this.table.say(whyNone(answer, this.process));
      this.table.set(withPlaces(answer).map(row => ({ ...row, freed_share: row.allocations > 0 && row.usual_life > 0 ? row.frees / row.allocations : 0, begin: time(answer.begin), end: time(answer.at) })));
      text($("leaks-hint"), answer.hint);
      text($("leaks-count"), `${exact(answer.sites.length)} of ${exact(answer.sites_with_live_samples)} sites with live samples, over ${duration(answer.at - answer.begin)}` + (answer.left_out > 0 ? `; ${exact(answer.left_out)} more left out` : ""));
    } catch (trouble) {
      if (!this.isLoaded) this.table.say(`not loaded: ${trouble.message}`);
      else if (!trouble.isLost) text($("leaks-count"), trouble.message);
    }
  }

  set_state(state, isSeen) {
    this.process = state.process;
    const python = arenasOfPython(state.memory);
    text($("leaks-python"), python && `${python} A leak of such objects is not listed here: heapwright live --python-objects -- … shows it.`);
    if (isSeen && state.process.state === "running" && performance.now() - (this.at ?? 0) > 5000) this.refresh();
  }

  seen() { this.refresh(); }
  restyle() {}
}
