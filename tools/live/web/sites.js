// A site as tables and stacks show it: the place in the program's own code, and the whole stack below the table.
import { element } from "./dom.js";
import { shortened, shortFunction } from "./format.js";

export const fileOf = path => path.slice(path.lastIndexOf("/") + 1);

/// "function  file:line"; where the line is not known the module, unless the name begins with it.
export function placeText([name, file, line, module]) {
  if (file) return `${shortFunction(name)}  ${fileOf(file)}:${line}`;
  // Code made at run time has no file.
  if (/\/tmp\/perf-\d+\.map$/.test(module)) return shortFunction(name);
  return name.startsWith(fileOf(module) + "+0x") ? name : `${shortFunction(name)}  [${fileOf(module)}]`;
}

/// Of `heapwright advise`, by the site's function, and its line where that is known.
export class GivenAdvice {
  constructor(all) { this.all = all; }
  get isEmpty() { return this.all.length === 0; }

  /// All of a line: several containers can allocate there.
  of([name, file, line]) {
    return this.all.filter(one => (one.file && file ? one.line === line && fileOf(one.file) === fileOf(file) : one.function === name));
  }
}

/// What the advice says, and its code.
function adviceLines(advice) {
  return [element("div", { className: "advice" }, `  advice: ${advice.kind}${advice.container ? ` for a ${advice.container}` : ""}`), ...(advice.saves ? [element("div", { className: "advice" }, `  ${advice.saves}`)] : []),
    element("div", { className: "machinery" }, `  ${advice.seen}`), ...advice.code.map(line => element("div", { className: "code" }, `    ${line}`))];
}

/// Rows with the places of the answer in them.
export function withPlaces(answer) {
  return answer.sites.map(site => {
    const frames = site.stack.map(number => answer.places[number]);
    const shown = frames[site.site];
    return { ...site, frames, label: shown ? placeText(shown) : "(no stack)", caller: site.caller === null ? "" : shortFunction(frames[site.caller][0]) };
  });
}

export const siteColumns = [
  { key: "label", title: "site", left: true, name: true, width: "minmax(var(--least-name),4fr)", value: row => row.label, text: row => row.label, tail: row => /  .*$/.exec(row.label)?.[0] ?? "",
    tip: row => row.frames.slice(row.site, row.site + 12).map(placeText).join("\n") },
  { key: "caller", title: "called by", left: true, name: true, width: "minmax(90px,1.8fr)", value: row => row.caller, text: row => row.caller, mood: () => "faint" },
];

export function showStack(host, row) {
  host.hidden = false;
  host.replaceChildren(...row.frames.map(([name, file, line, module, isInlined], i) => element("div",
    { className: "frame" + (i === row.site ? " site" : i < row.site ? " machinery" : "") }, element("span", { title: name }, `${i === row.site ? "▸" : " "} ${shortened(name, 300)} `),
    element("em", {}, shortened(file ? `${file}:${line}` : module, 90) + (isInlined ? "  (inlined)" : "")))),
  ...(row.stacks > 1 ? [element("div", { className: "machinery" }, `  ${row.stacks} call stacks are of this site; this one has the most. They differ further out: the flame graph shows how.`)] : []),
  ...(row.advice ?? []).flatMap(adviceLines),
  ...(row.is_cut ? [element("div", { className: "machinery" }, "  … more callers; the stack was cut")] : []));
}
