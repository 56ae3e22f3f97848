// Numbers and times as people read them; the same everywhere on the page.
const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(v) {
  if (v == null || Number.isNaN(v)) return "–";
  const sign = v < 0 ? "−" : "";
  let u = 0;
  for (v = Math.abs(v); v >= 999.5 && u < units.length - 1; ++u) v /= 1024;
  return sign + (u === 0 ? Math.round(v) : v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2)) + " " + units[u];
}

/// "4.00 KiB" as "4 KiB".
export const round = text => text.replace(/(\.\d*?)0+(?= )/, "$1").replace(/\.(?= )/, "");

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
export const exact = v => whole.format(v).replace("-", "−");
export const exactBytes = v => exact(v) + " bytes";

export function count(v) {
  if (v == null || Number.isNaN(v)) return "–";
  const a = Math.abs(v);
  if (a < 100_000) return exact(v);
  const [scale, unit] = a < 1e6 ? [1e3, "k"] : a < 1e9 ? [1e6, "M"] : a < 1e12 ? [1e9, "G"] : [1e12, "T"];
  const s = v / scale;
  return (Math.abs(s) >= 100 ? s.toFixed(0) : s.toFixed(1)).replace("-", "−") + " " + unit;
}

export const signed = (v, show) => (v > 0 ? "+" : "") + show(v);
export const percent = v => (v * 100).toFixed(v >= 0.995 || v === 0 ? 0 : v < 0.001 ? 2 : 1) + " %";
/// "1.20 × live"; nothing where little is live: then RSS is mostly something else.
export function timesLive(rss, live) {
  const ratio = rss / live;
  return live >= 2 ** 20 && ratio <= 100 ? `${ratio.toFixed(2)} × live` : "";
}
/// What no site shows of a Python. `memory` of the state.
export const arenasOfPython = memory => (memory?.python_arenas > 0 ? `Arenas of Python, about ${bytes(memory.python_arenas)} of address space: invisible without --python-objects. Python keeps its small objects there, and asks no malloc for them.` : "");
/// "1 thread", "2 threads".
export const several = (n, noun) => `${exact(n)} ${noun}${n === 1 ? "" : "s"}`;
/// "1.20 MiB ±12 %": nothing is said of an error below half a per cent. "up to 1.20 MiB" where too few
/// blocks were sampled to say more.
export function withError(v, error, show = bytes) {
  if (error > v) return `up to ${show(v + error)}`;
  return show(v) + (v > 0 && error >= v / 200 ? ` ±${(error / v * 100).toFixed(0)} %` : "");
}
/// "~1,200" where the bytes of these blocks have an error.
export const aboutCount = (n, inBytes, error) => (error >= inBytes / 200 && error > 0 ? "~" : "") + count(n);
export const clock = s => new Date(s * 1000).toLocaleTimeString("en-GB");

/// How many seconds ago the peak was, in words. It is now while about as much is live.
export function whenPeaked(seconds, live, peak) {
  if (seconds >= 1) return duration(seconds) + " ago";
  return live < 0.99 * peak ? "less than a second ago" : "now";
}

export function duration(s) {
  if (s < 1e-3) return Math.round(s * 1e6) + " µs";
  if (s < 1) return Math.round(s * 1e3) + " ms";
  if (s < 120) return s.toFixed(s < 10 ? 1 : 0) + " s";
  if (s < 7200) return Math.round(s / 60) + " min";
  if (s < 172800) return Math.round(s / 3600) + " h";
  return Math.round(s / 86400) + " days";
}

/// Without its middle where it is longer than `most` characters: names of templates often differ at their ends alone. Of few characters the first
/// say most.
export function shortened(words, most) {
  if (words.length <= most) return words;
  const kept = Math.max(1, most - 1), end = kept < 24 ? 0 : Math.floor(kept / 3);
  return words.slice(0, kept - end) + "…" + words.slice(words.length - end);
}

/// What tells functions apart in a narrow column. Stacks below tables have complete names.
export const shortFunction = name => name.replaceAll("(anonymous namespace)::", "");
