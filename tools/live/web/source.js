// Lines of source around a place, where the file is there.
import { element } from "./dom.js";
import { fileOf } from "./sites.js";

export class Source {
  constructor(host, connection) { Object.assign(this, { host, connection }); }

  /// `place`: a row of places; null: none.
  async show(place) {
    const asked = this.asked = place && place[1] && place[2] > 0 && !place[1].startsWith("<") ? place : null;
    let answer = null;
    if (asked) answer = await this.connection.get("/api/source", { file: asked[1], line: asked[2] }).catch(() => null);
    if (asked !== this.asked) return;
    this.host.hidden = !(answer?.lines.length > 0);
    if (this.host.hidden) return;
    const { file, line, first, lines, is_newer: isNewer } = answer;
    this.host.setAttribute("aria-label", `Source of ${fileOf(file)} around line ${line}`);
    this.host.replaceChildren(element("div", { className: "quiet", title: file }, `${file}${isNewer ? " · changed since the program began: lines may be other ones" : ""}`),
      ...lines.map((words, i) => element("div", { className: first + i === line ? "at" : "" }, element("em", {}, String(first + i)), element("span", {}, words || " "))));
  }
}
