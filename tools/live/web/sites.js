// A site as tables and stacks show it: the place in the program's own code, and the whole stack below the table.
import { element } from "./dom.js";

export const fileOf = path => path.slice(path.lastIndexOf("/") + 1);
export const placeText = ([name, file, line, module]) => (file ? `${name}  ${fileOf(file)}:${line}` : `${name}  [${fileOf(module)}]`);

/// Rows with the places of the answer in them.
export function withPlaces(answer) {
  return answer.sites.map(site => {
    const frames = site.stack.map(number => answer.places[number]);
    const shown = frames[site.site];
    const caller = frames.slice(site.site + 1).find(frame => frame[0] !== shown?.[0]);
    return { ...site, frames, label: shown ? placeText(shown) : "(no stack)", caller: caller ? caller[0] : "" };
  });
}

export const siteColumns = [
  { key: "label", title: "site", left: true, name: true, width: "minmax(300px,5fr)", value: row => row.label, text: row => row.label,
    tip: row => row.frames.slice(row.site, row.site + 12).map(placeText).join("\n") },
  { key: "caller", title: "called by", left: true, name: true, width: "minmax(120px,1.8fr)", value: row => row.caller, text: row => row.caller, mood: () => "faint" },
];

export function showStack(host, row) {
  host.hidden = false;
  host.replaceChildren(...row.frames.map(([name, file, line, module, isInlined], i) => element("div",
    { className: i === row.site ? "site" : i < row.site ? "machinery" : "" }, `${i === row.site ? "▸" : " "} ${name} `,
    element("em", {}, (file ? `${file}:${line}` : module) + (isInlined ? "  (inlined)" : "")))),
  ...(row.is_cut ? [element("div", { className: "machinery" }, "  … more callers; the stack was cut")] : []));
}
