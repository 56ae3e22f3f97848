// The page in a real browser, as a person uses it.
//
//   node page_test.mjs PACKAGES CHROMIUM LIVE_SERVER MAKE_SEGMENT HEAPWRIGHT LIBHEAPWRIGHT LIBHEAPWRIGHT-HARDENED MISTAKEN_SERVER NAMED_THREADS    screenshots go to PACKAGES/screenshots
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { several, timesLive, whenPeaked } from "../../tools/live/web/format.js";

const [packages, executablePath, server, makeSegment, heapwright, library, hardened, mistakenServer, namedThreads] = process.argv.slice(2);
const { chromium } = createRequire(join(packages, "package.json"))("playwright-core");
const shots = join(packages, "screenshots");
mkdirSync(shots, { recursive: true });
const probe = join(dirname(library), "libheapwright-probe.so");

const line = (child, stream) => new Promise((resolve, reject) => {
  let all = "";
  child[stream].on("data", part => { if ((all += part).includes("\n")) resolve(all); });
  child.on("exit", code => reject(new Error(`ended with ${code}: ${all}`)));
});

/// A program with 500 threads, 80 size classes and 10,000 stacks, a server that shows it, and a page.
async function served({ seconds = 120, mode = "", dark = false, threads = 500 } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "heapwright-page-")), segment = join(folder, "segment");
  const program = spawn(makeSegment, [segment, String(seconds), String(threads), "10000", mode], { stdio: ["ignore", "pipe", "inherit"] });
  await line(program, "stdout");
  const child = spawn(server, [segment], { stdio: ["ignore", "ignore", "pipe"] });
  return shown(child, dark, () => {
    if (program.exitCode === null) { program.removeAllListeners("exit"); program.kill(); }
    rmSync(folder, { recursive: true });
  });
}

/// What has not come in time is told with what the page showed instead.
function tellWhatIsShown(page) {
  const wait = page.waitForFunction.bind(page);
  page.waitForFunction = async (...given) => {
    try {
      return await wait(...given);
    } catch (trouble) {
      const text = await page.innerText("body", { timeout: 1000 }).catch(() => "nothing");
      throw new Error(`${trouble.message}\nawaited: ${given[0]}\nshown at ${page.url()}:\n${text.slice(0, 2000)}`, { cause: trouble });
    }
  };
}

/// A server that has been started, and a page of it. `ended()`: what else is to be ended with it.
async function shown(child, dark, ended) {
  const url = (await line(child, "stderr")).match(/http:\S+/)[0];
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: dark ? "dark" : "light" });
  const troubles = [];
  page.on("pageerror", error => troubles.push(error.message));
  page.on("console", message => { if (message.type() === "error") troubles.push(message.text()); });
  tellWhatIsShown(page);
  await page.goto(url);
  await page.waitForFunction(() => document.getElementById("live").textContent !== "");
  const end = async () => {
    await page.unrouteAll({ behavior: "ignoreErrors" });  // an answer may be on its way
    await page.close();
    if (child.exitCode === null) { child.removeAllListeners("exit"); child.kill(); }
    ended();
  };
  return { page, url, child, troubles, end, text: id => page.textContent("#" + id) };
}

/// What is drawn is drawn with the next frame.
async function becomes(look, isRight, what) {
  let seen;
  for (let i = 0; i < 100; ++i) {
    seen = await look();
    if (isRight(seen)) return;
    await new Promise(resolve => setTimeout(resolve, 100));
  }
  assert.fail(`${what}: ${seen}`);
}

/// How long frames take while the table is scrolled, in words.
const frames = (page, many) => page.evaluate(many => new Promise(resolve => {
  const host = document.getElementById("table"), times = [];
  let last = performance.now();
  const step = () => {
    const now = performance.now();
    times.push(now - last);
    last = now;
    host.scrollTop += 700;
    if (times.length < many) return requestAnimationFrame(step);
    const missed = times.filter(time => time > 25).length;
    resolve(`median ${times.sort((a, b) => a - b)[many >> 1].toFixed(1)} ms, ${missed} of ${many} longer than 25 ms`);
  };
  requestAnimationFrame(step);
}), many);

let browser;
before(async () => { browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] }); });
after(async () => { await browser.close(); });

for (const dark of [false, true]) {
  test(`all views show the program, ${dark ? "dark" : "light"}`, async () => {
    const s = await served({ dark });
    const save = name => s.page.screenshot({ path: join(shots, `${name}-${dark ? "dark" : "light"}.png`) });
    try {
      assert.equal(await s.text("program"), "example-server");
      await s.page.waitForFunction(() => /GiB\/s|MiB\/s/.test(document.getElementById("rate").textContent));
      assert.match(await s.text("live"), /^\d.* [MG]iB$/);
      await s.page.waitForTimeout(4000);
      // A line is drawn: the plot has pixels of its colour.
      assert.ok(await s.page.evaluate(() => {
        const canvas = document.querySelector("#timeline canvas"), data = canvas.getContext("2d").getImageData(90, 30, canvas.width - 200, canvas.height - 70).data;
        let coloured = 0;
        for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 0 && Math.abs(data[i] - data[i + 2]) > 60) ++coloured;
        return coloured > 500;
      }), "the time line is empty");
      await save("now");
      await s.page.keyboard.press("2");
      await s.page.waitForFunction(() => /samples/.test(document.getElementById("flame-note").textContent));
      await s.page.waitForSelector("#sites .row");
      assert.match(await s.text("sites"), /server::re\S*…  make_segment\.cpp:\d+/);
      await save("where");
      await s.page.fill("#sites-search", "remember_session_forever");
      await becomes(() => s.text("sites-count"), count => /^\d+ of (the first )?[\d,]+/.test(count), "how many are found");
      await s.page.keyboard.press("Escape");
      await s.page.keyboard.press("3");
      await s.page.waitForSelector("#leaks .row");
      assert.match(await s.page.textContent("#leaks .row"), /server::re\S*…  make_segment\.cpp:\d+/);
      await s.page.click("#leaks .row");
      assert.match(await s.text("leak-stack"), /run_forever/);
      await save("leaks");
      await s.page.keyboard.press("4");
      await s.page.waitForSelector("#memory-parts tr");
      assert.match(await s.text("memory-parts"), /asked for by the program/);
      await s.page.waitForFunction(() => /make_segment/.test(document.getElementById("memory-table").textContent));
      await save("memory");
      assert.deepEqual(s.troubles, []);
    } finally { await s.end(); }
  });
}

test("tables are sorted, searched, and hold only the rows in sight", async () => {
  const s = await served();
  try {
    const size = await s.page.textContent("#table .row .cell");
    const cell = (column) => s.page.evaluate(([size, column]) => {
      const row = [...document.querySelectorAll("#table .row")].find(row => row.children[0].textContent === size);
      return Number(row.children[column].textContent.replace(/[,–]/g, "").replace(/ [kMG]$/, unit => ({ k: "e3", M: "e6", G: "e9" }[unit[1]])));
    }, [size, column]);
    const before = await cell(5);
    await s.page.click("#more summary");
    assert.deepEqual(await s.page.evaluate(() => ["state", "stacks"].map(what => /^heapwright-\d+-/.test(document.getElementById("save-" + what).download))), [true, true]);
    await s.page.click("#from-now");
    assert.equal(await s.page.getAttribute("#more", "open"), null, "the menu stays open");
    await s.page.waitForSelector("#from-start:not([hidden])");
    await becomes(() => cell(5), n => n < before / 2, "the table counts from now on");
    assert.ok(await cell(3) > 0, "what is live stays what it is");
    await s.page.screenshot({ path: join(shots, "from-now-light.png") });
    await s.page.click("#from-start");
    await becomes(() => cell(5), n => n >= before, "the table counts from the start again");
    await s.page.click("text=Threads × classes");
    await s.page.waitForFunction(() => Number(document.getElementById("table").getAttribute("aria-rowcount")) > 20000, null, { timeout: 20000 });
    assert.ok(await s.page.locator("#table .row").count() < 80);
    await s.page.screenshot({ path: join(shots, "cells-light.png") });
    // Each frame while it is scrolled through: the time the page's own code takes must leave room for 60 of them in a second.
    console.log(`frames while scrolling: ${await frames(s.page, 120)}`);
    await s.page.click("#table-kind >> text=Threads >> nth=0");
    await s.page.keyboard.press("/");
    await s.page.keyboard.type("io-");
    await s.page.waitForFunction(() => /^71 of/.test(document.getElementById("table-count").textContent));
    await s.page.click("#table .head button:has-text('net')");
    await s.page.click("#table .head button:has-text('net')");
    await s.page.waitForFunction(() => document.querySelector("#table .row .shrank"));
    await s.page.hover("#table .row .shrank");
    assert.match(await s.text("tip"), /frees more than it allocates/);
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("an hour of time line, while figures come ten times a second", async () => {
  const s = await served();
  try {
    // What a server that has looked for an hour answers.
    const end = Date.now() / 1000;
    await s.page.route("**/api/history**", route => {
      const points = Number(new URL(route.request().url()).searchParams.get("most")), column = of => Array.from({ length: points }, (_, i) => of(i));
      return route.fulfill({ json: { at: column(i => end - 3600 * (points - i) / points), live: column(i => 5e8 + 1e8 * Math.sin(i / 500)),
      rss: column(i => 7e8 + 1e8 * Math.sin(i / 900)), allocated_bytes: column(i => i * 1e7), allocations: column(i => i * 1e4) } });
    });
    await s.page.reload();
    await s.page.waitForFunction(() => document.getElementById("live").textContent !== "");
    await s.page.selectOption("#every", "100");
    await s.page.waitForTimeout(1500);
    await s.page.screenshot({ path: join(shots, "hour-light.png") });
    await s.page.click("text=Threads × classes");
    await s.page.waitForFunction(() => Number(document.getElementById("table").getAttribute("aria-rowcount")) > 20000, null, { timeout: 20000 });
    console.log(`frames with an hour of time line: ${await frames(s.page, 300)}`);
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("pause, mark, growth since the mark, counting off and on", async () => {
  const s = await served();
  try {
    await s.page.keyboard.press(" ");
    assert.match(await s.text("status"), /^paused at/);
    const still = await s.text("peak-more");
    await s.page.waitForTimeout(1500);
    assert.equal(await s.text("peak-more"), still);
    await s.page.keyboard.press(" ");
    await s.page.keyboard.press("m");
    await s.page.fill("#mark-name", "after <b>warm-up</b>");
    await s.page.keyboard.press("Enter");
    await s.page.waitForFunction(() => !document.getElementById("mark-dialog").open);
    await s.page.keyboard.press("2");
    assert.ok(await s.page.isVisible("#since"), "the keys choose the view after the dialog");
    await s.page.waitForFunction(() => [...document.getElementById("since").options].some(o => o.textContent === "after <b>warm-up</b>"));
    await s.page.waitForTimeout(1500);
    await s.page.selectOption("#since", { label: "after <b>warm-up</b>" });
    await s.page.waitForFunction(() => /red grows, blue shrinks/.test(document.getElementById("flame-note").textContent));
    await s.page.waitForFunction(() => /^\+/.test(document.querySelector("#sites .row .grew")?.textContent ?? ""));
    await s.page.fill("#flame-search", "remember_session");
    await s.page.waitForFunction(() => /found in/.test(document.getElementById("flame-note").textContent));
    await s.page.fill("#flame-search", "");
    await s.page.screenshot({ path: join(shots, "growth-light.png") });
    await s.page.click("#more summary");
    await s.page.screenshot({ path: join(shots, "menu-light.png") });
    await s.page.uncheck("#counting");
    await s.page.waitForFunction(() => /dormant/.test(document.getElementById("status").textContent));
    await s.page.check("#counting");
    await s.page.waitForFunction(() => document.getElementById("status").textContent === "live");
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("flame graph: a click zooms, the keys move, Escape shows all", async () => {
  const s = await served();
  try {
    await s.page.keyboard.press("2");
    await s.page.waitForFunction(() => /samples/.test(document.getElementById("flame-note").textContent));
    await s.page.click("#flame canvas", { position: { x: 40, y: 64 } });
    assert.ok(await s.page.isVisible("#flame-reset"));
    assert.match(await s.text("flame-detail"), /make_segment\.cpp:\d+/);
    const here = await s.text("flame-detail");
    await s.page.focus("#flame canvas");
    await s.page.keyboard.press("ArrowDown");
    assert.notEqual(await s.text("flame-detail"), here);
    // The line below is of the graph above, also when that becomes another one.
    const before = await s.text("flame-detail");
    await s.page.click("#flame-value >> text=Count");
    await s.page.waitForFunction(before => document.getElementById("flame-detail").textContent !== before, before);
    assert.match(await s.text("flame-detail"), / blocks/);
    await s.page.selectOption("#since", "start");
    await s.page.waitForFunction(() => /red grows/.test(document.getElementById("flame-note").textContent));
    assert.doesNotMatch(await s.text("flame-detail"), / %/, "shares are of graphs that show no growth");
    await s.page.focus("#flame canvas");
    await s.page.keyboard.press("Escape");
    assert.ok(!await s.page.isVisible("#flame-reset"));
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("estimates have an error; sites can be those at the peak", async () => {
  const s = await served();
  try {
    await s.page.keyboard.press("2");
    await s.page.waitForFunction(() => /±\d+ %.*a sample every 64 KiB/.test(document.getElementById("flame-note").textContent));
    await s.page.waitForFunction(() => /±\d+ %/.test(document.querySelector("#sites .row")?.textContent));
    await s.page.click("#flame-value >> text=At the peak");
    await becomes(() => s.text("flame-note"), words => words !== "" && !/ samples/.test(words), "samples of the peak are not counted");
    await s.page.waitForFunction(() => [...document.querySelectorAll("#sites .head button")].some(b => b.textContent.startsWith("at the peak")));
    await s.page.waitForSelector("#sites .row");
    const cut = await s.page.evaluate(() => [...document.querySelectorAll("#sites .row")].slice(0, 8).map(r => r.querySelector(".tail")).filter(t => t.scrollWidth > t.clientWidth || t.getBoundingClientRect().right > t.parentNode.getBoundingClientRect().right).map(t => t.textContent));
    assert.deepEqual(cut, [], "the lines of sites are cut");
    await s.page.screenshot({ path: join(shots, "peak-light.png") });
    // Where there is room for whole names.
    await s.page.setViewportSize({ width: 2560, height: 800 });
    const shownNames = () => s.page.evaluate(() => [...document.querySelectorAll("#sites .row")].filter(r => !r.hidden).map(r => r.children[0].textContent + r.children[1].textContent));
    await becomes(shownNames, names => !names.some(name => name.includes("…")), "whole names");
    const names = await shownNames();
    assert.equal(new Set(names).size, names.length, "two rows look alike");
    await s.page.setViewportSize({ width: 1280, height: 800 });
    await s.page.click("#more summary");
    await s.page.selectOption("#sampling", "1");
    await s.page.waitForFunction(() => /every block now; what was allocated before is an estimate/.test(document.getElementById("flame-note").textContent));
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("the keys: help, a search that Escape ends, and after a click on a field", async () => {
  const s = await served();
  try {
    await s.page.keyboard.press("?");
    assert.ok(await s.page.isVisible("#help-dialog"));
    await s.page.screenshot({ path: join(shots, "help-light.png") });
    await s.page.keyboard.press("3");
    assert.ok(!await s.page.isVisible("#view-leaks"), "the keys act behind the help");
    await s.page.keyboard.press("Escape");
    assert.ok(!await s.page.isVisible("#help-dialog"));
    await s.page.keyboard.press("2");
    await s.page.waitForFunction(() => /samples/.test(document.getElementById("flame-note").textContent));
    await s.page.keyboard.press("/");
    await s.page.keyboard.type("remember");
    await s.page.waitForFunction(() => /found in/.test(document.getElementById("flame-note").textContent));
    await s.page.keyboard.press("Escape");
    assert.equal(await s.page.inputValue("#flame-search"), "");
    const focused = () => s.page.evaluate(() => document.activeElement.tagName + "#" + (document.activeElement.id || document.activeElement.closest("[id]").id));
    assert.equal(await focused(), "CANVAS#flame");
    for (const [key, field, table] of [["1", "table-search", "table"], ["2", "sites-search", "sites"], ["3", "leaks-search", "leaks"], ["4", "memory-search", "memory-table"]]) {
      await s.page.keyboard.press(key);
      if (table === "memory-table") await s.page.waitForSelector("#memory-table .row");
      await s.page.click("#" + field);
      await s.page.keyboard.type("x");
      await s.page.keyboard.press("Escape");
      assert.equal(await focused(), "DIV#" + table);
    }
    await s.page.keyboard.press("2");
    assert.doesNotMatch(await s.text("flame-note"), /found in/);
    await s.page.click("#own-code");
    await s.page.keyboard.press("3");
    assert.ok(await s.page.isVisible("#view-leaks"), "the keys do nothing after a click on a checkbox");
    await s.page.keyboard.press("2");
    await s.page.selectOption("#from", "site");
    await s.page.keyboard.press("1");
    assert.ok(await s.page.isVisible("#view-now"), "the keys do nothing after a choice from a list");
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("axe-core finds nothing against the page, for those who hear it or use keys alone", async () => {
  const s = await served({ seconds: 60, threads: 20 });
  const axe = readFileSync(createRequire(join(packages, "package.json")).resolve("axe-core/axe.min.js"), "utf8");
  try {
    for (const [colorScheme, width] of [["light", 400], ["dark", 1366]]) {
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme, bypassCSP: true });
      for (const view of ["now", "now?table=threads", "where", "where?from=site&by=package", "leaks", "memory"]) {
        await page.goto("about:blank");
        await page.goto(`${s.url}#${view}`);
        await page.waitForFunction(() => document.getElementById("status").textContent === "live");
        if (view.startsWith("where")) {
          await page.waitForSelector("#sites .row");
          await page.click("#sites .row");
          await page.focus("#flame canvas");
          await page.keyboard.press("ArrowDown");
        }
        await page.evaluate(axe);
        const found = await page.evaluate(async () => (await axe.run()).violations.map(v => `${v.id}: ${v.help}: ${v.nodes.map(n => n.html.slice(0, 100)).join(" ")}`));
        assert.deepEqual(found, [], `${view}, ${colorScheme}, ${width}`);
      }
      await page.close();
    }
  } finally { await s.end(); }
});

test("words for few and for little", () => {
  assert.deepEqual([0, 1, 2].map(n => several(n, "thread")), ["0 threads", "1 thread", "2 threads"]);
  assert.equal(timesLive(15e6, 10e6), "1.50 × live");
  assert.equal(timesLive(30e6, 12e3), "", "little is live");
  assert.equal(timesLive(2e9, 2e6), "", "most of RSS is something else");
  assert.deepEqual([whenPeaked(0.4, 100, 100), whenPeaked(0.4, 50, 100), whenPeaked(3, 50, 100)], ["now", "less than a second ago", "3.0 s ago"]);
});

/// The page with answers of the server changed by `change(answer)`.
const changed = (page, path, change) => page.route(`**${path}*`, async route => {
  const answer = await (await route.fetch()).json();
  await route.fulfill({ json: change(answer) ?? answer });
});

test("names of 4,000 characters: their ends tell them apart, tips are within the window, lines are in sight", async () => {
  const s = await served();
  const longNames = answer => { answer.places = answer.places.map(([, ...more], i) => [`void first_words<${"very::long_argument, ".repeat(200)}last_${i}>()`, ...more]); };
  /// The tip of the mouse's place, when it is there.
  const tip = async () => {
    await s.page.waitForSelector("#tip:not([hidden])");
    const { top, bottom, words } = await s.page.evaluate(() => ({ ...document.getElementById("tip").getBoundingClientRect().toJSON(), words: document.getElementById("tip").textContent }));
    assert.ok(top >= 0 && bottom <= 900, `a tip from ${top} to ${bottom}`);
    return words;
  };
  try {
    await s.page.setViewportSize({ width: 1920, height: 900 });
    await changed(s.page, "/api/sites", longNames);
    await changed(s.page, "/api/stacks", longNames);
    await s.page.keyboard.press("2");
    await becomes(() => s.text("sites"), words => /void .*…/.test(words), "long names");
    const cells = await s.page.evaluate(() => [...document.querySelectorAll("#sites .row:not([hidden]) .cell:first-child")].slice(0, 5).map(cell => ({ words: cell.textContent, isCut: cell.firstChild.scrollWidth > cell.firstChild.clientWidth + 1 })));
    for (const { words, isCut } of cells) assert.ok(!isCut && /^void .*….*\d+>\(\)  \S+:\d+$/.test(words), words);
    await s.page.setViewportSize({ width: 1280, height: 900 });
    await s.page.hover("#sites .row .cell");
    assert.match(await tip(), /^void first_words<.*….*last_\d+>\(\)  \S+:\d+$/m);
    await s.page.hover("#flame canvas", { position: { x: 40, y: 64 } });
    assert.match(await tip(), /^void first_words<.*….*last_\d+>\(\)\n/);
    await s.page.click("#sites .row");
    const frames = await s.page.evaluate(() => [...document.querySelectorAll("#site-stack .frame")].map(frame => ({ name: frame.children[0].textContent, where: frame.children[1].textContent, right: frame.children[1].getBoundingClientRect().right, most: frame.parentNode.getBoundingClientRect().right })));
    assert.ok(frames.length > 3);
    for (const { name, where, right, most } of frames) assert.ok(right <= most && /first_words<.*….*last_\d+>\(\) $/.test(name), `${name} or ${where} is out of sight`);
    await s.page.screenshot({ path: join(shots, "long-names.png") });
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("names of functions without symbols, the cost of sampling, one thread", async () => {
  const s = await served({ threads: 1 });
  try {
    assert.match(await s.text("about"), / · 1 thread$/);
    await changed(s.page, "/api/sites", answer => {
      answer.places = answer.places.map(() => ["python3.11+0x53b227", "", 0, "/usr/bin/python3.11", false]);
    });
    await s.page.keyboard.press("2");
    await becomes(() => s.page.evaluate(() => document.querySelector("#sites .row .cell")?.textContent), name => name === "python3.11+0x53b227", "the name");
    assert.deepEqual(await s.page.evaluate(() => [...document.getElementById("sampling").options].map(o => o.textContent).filter(t => t.includes("%"))), ["as 0.8 % of the time allows"]);
    await changed(s.page, "/api/leaks", answer => ({ ...answer, hint: "function names are missing in app" }));
    await s.page.keyboard.press("3");
    await becomes(() => s.text("leaks-hint"), hint => hint === "function names are missing in app", "the hint");
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("why no site is listed as a leak", async () => {
  const s = await served({ threads: 20 });
  try {
    let answers = {};
    await changed(s.page, "/api/leaks", answer => ({ ...answer, sites: [], left_out: 0, ...answers, begin: answer.at - answers.time }));
    await s.page.keyboard.press("3");
    for (const [given, words] of [
      [{ time: 12, sites_with_live_samples: 0, sites_judged: 0 }, /^No sample is live: what was allocated is freed, or no sample met it\. Where → At the peak has what lived at the peak\. The program has been watched for 12 s only; a leak shows within about a minute, as a rule\.$/],
      [{ time: 12, sites_with_live_samples: 5, sites_judged: 0 }, /^None of 5 sites can be judged: that takes 8 live samples of a site from after the first 4 % of the time.* cannot be seen yet\. The program has been watched for 12 s only;/],
      [{ time: 512, sites_with_live_samples: 1, sites_judged: 0 }, /^None of 1 site can be judged.* A leak slower than about 1 KiB per second cannot be seen yet\. Sampling more often \(More\)/],
      [{ time: 512, sites_with_live_samples: 40, sites_judged: 3 }, /^No site keeps growing: of 40 sites, 3 have enough live samples to be judged, and what is live was not allocated evenly over the 9 min\. A leak that came in a burst, or pauses, is not listed: Where shows it as growth since a mark \(Mark…\)\. A leak slower than about 1 KiB per second cannot be seen yet\.$/]]) {
      answers = given;
      await s.page.click("#leaks-refresh");
      await becomes(() => s.page.textContent("#leaks .empty"), seen => words.test(seen), String(words));
    }
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("after the end of a program leaks are looked for elsewhere", async () => {
  const s = await served({ threads: 20, seconds: 1 });
  try {
    await s.page.waitForFunction(() => /ended/.test(document.getElementById("status").textContent));
    await changed(s.page, "/api/leaks", answer => ({ ...answer, sites: [], left_out: 0, sites_judged: 0 }));
    await s.page.keyboard.press("3");
    // Asked for again each time: now and then the first answer reaches the page unchanged.
    await becomes(async () => { await s.page.keyboard.press("r"); return s.page.textContent("#leaks .empty"); }, seen => /is not seen by these samples\. A run with --sample 1 has all blocks\. Where → At the peak/.test(seen), "what is left to do");
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("when the connection is lost, what was shown stays", async () => {
  const s = await served({ threads: 20 });
  try {
    const never = await browser.newPage();
    await never.goto(s.url);
    await never.waitForFunction(() => document.getElementById("live").textContent !== "");
    await s.page.keyboard.press("3");
    await s.page.waitForSelector("#leaks .row");
    await s.page.keyboard.press("2");
    await s.page.waitForSelector("#sites .row");
    const before = await s.text("flame-note"), sites = await s.page.locator("#sites .row").count();
    s.child.removeAllListeners("exit");
    s.child.kill("SIGKILL");
    for (const page of [s.page, never]) await page.waitForFunction(() => /connection lost, retrying/.test(document.getElementById("status").textContent));
    for (const key of ["1", "3", "2"]) await s.page.keyboard.press(key);
    await s.page.click("#flame-value >> text=Count");
    await s.page.waitForFunction(() => document.querySelector("#flame-value [data-value=live]").getAttribute("aria-pressed") === "true");
    assert.equal(await s.text("flame-note"), before);
    assert.equal(await s.page.locator("#sites .row").count(), sites);
    assert.ok(await s.page.isVisible("#sites .row"));
    await s.page.screenshot({ path: join(shots, "lost-where.png") });
    assert.ok(!await s.page.isVisible("#sites .empty"));
    // Of a view that was never seen one message says why it is empty.
    await never.keyboard.press("2");
    await becomes(() => never.evaluate(() => document.querySelector("#flame canvas").getAttribute("aria-description")), said => said === "not loaded: the connection is lost", "the graph says why");
    assert.equal(await never.textContent("#sites .empty") + await never.textContent("#flame-note"), "");
    await never.screenshot({ path: join(shots, "lost-never.png") });
    await never.keyboard.press("3");
    await becomes(() => never.textContent("#leaks .empty"), said => said === "not loaded: the connection is lost", "the table says why");
    await never.close();
  } finally { await s.end(); }
});

test("the page opens on the process with most live bytes, not on what has started it", async () => {
  const large = "import time; x = [bytes(1000) for i in range(40000)]; time.sleep(100)";
  const s = await shown(spawn(heapwright, ["live", "--no-browser", "--", "/bin/sh", "-c", '(sleep 3; exec /usr/bin/python3 -c "$0") & wait', large], { stdio: ["ignore", "ignore", "pipe"] }), false, () => {});
  try {
    await becomes(() => s.page.evaluate(async () => (await (await fetch("/api/processes")).json()).rows.map(row => row[4])), rows => rows.some(live => live > 30e6), "the child has its memory");
    assert.equal(await s.text("program"), "sh", "what is shown does not change by itself");
    await becomes(() => s.text("notes"), words => /^Most live bytes are in another process: python3 \d+ has \d.* MiB\. It can be chosen above\.$/.test(words), "it is told");
    await s.page.screenshot({ path: join(shots, "larger.png") });
    await s.page.goto(s.url);
    await s.page.waitForFunction(() => document.getElementById("program").textContent === "python3");
    await s.page.waitForFunction(() => document.getElementById("process").selectedOptions[0]?.textContent.startsWith("python3"));
    assert.match(await s.page.getAttribute("a[href*='sites.csv']", "href"), /process=\d/);
    const [launcher] = await s.page.evaluate(() => [...document.getElementById("process").options].filter(o => o.textContent.startsWith("sh")).map(o => o.value));
    await s.page.selectOption("#process", launcher);
    await s.page.waitForFunction(() => document.getElementById("program").textContent === "sh");
    await s.page.reload();
    await s.page.waitForFunction(() => document.getElementById("program").textContent !== "heapwright live");
    assert.equal(await s.text("program"), "sh", "a choice stays");
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("a Python that grows in arenas of its own: Now and Leaks say where its memory is", async () => {
  const s = await shown(spawn(heapwright, ["live", "--no-browser", "--", "/usr/bin/python3", "-c", "import time; kept = [object() for _ in range(2_000_000)]; time.sleep(100)"], { stdio: ["ignore", "ignore", "pipe"] }), false, () => {});
  try {
    await becomes(() => s.text("rss-more"), words => /Python’s arenas about (3|4)\d(\.\d)? MiB/.test(words), "the tile of RSS");
    await s.page.keyboard.press("3");
    assert.match(await s.text("leaks-python"), /^Arenas of Python, about (3|4)\d.* invisible without --python-objects.* not listed here: heapwright live --python-objects -- … shows it\.$/);
    await s.page.setViewportSize({ width: 400, height: 800 });
    await s.page.screenshot({ path: join(shots, "python-400.png"), fullPage: true });
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

/// Heads and cells of a table that are cut, and whether it scrolls sideways. Names may be cut: they have a tip.
const cut = (page, table) => page.evaluate(table => {
  const host = document.getElementById(table), isCut = e => e.scrollWidth > e.clientWidth;
  const found = [...host.querySelectorAll(".head button, .row:not([hidden]) .cell:not(.name)")].filter(isCut).map(e => e.textContent);
  return [...new Set(found), ...(isCut(host) ? ["the table"] : [])];
}, table);

test("at 1280 pixels no figure and no head of a table is cut", async () => {
  const s = await served();
  try {
    await changed(s.page, "/api/sites", answer => {
      // All of it as long as it gets.
      for (const site of answer.sites) Object.assign(site, { first: answer.at - 118 * 60, allocations: 99999, samples: 99999, stacks: 1000, live_blocks: 99999,
        live_bytes: 1023 * 2 ** 20, live_bytes_error: 1023 * 2 ** 20, allocated_bytes: 1023 * 2 ** 20, allocated_bytes_error: 1023 * 2 ** 20 });
    });
    await changed(s.page, "/api/leaks", answer => {
      for (const site of answer.sites) Object.assign(site, { live_blocks: 99999, usual_life: 118 * 60, overdue_bytes: 1023 * 2 ** 20, bytes_per_second: 1023 * 2 ** 20 });
    });
    for (const [key, tables] of [["1", ["table"]], ["2", ["sites"]], ["3", ["leaks"]], ["4", ["memory-table"]]]) {
      await s.page.keyboard.press(key);
      for (const table of tables) {
        await s.page.waitForSelector(`#${table} .row`);
        for (let i = 0; i < await s.page.locator(`#${table} .head button`).count(); ++i) {
          await s.page.click(`#${table} .head button >> nth=${i}`);
          assert.deepEqual(await cut(s.page, table), [], `${table}, sorted by column ${i}`);
        }
      }
    }
    for (const kind of ["threads", "cells"]) {
      await s.page.keyboard.press("1");
      await s.page.click(`#table-kind [data-kind=${kind}]`);
      await s.page.waitForSelector("#table .row");
      assert.deepEqual(await cut(s.page, "table"), [], kind);
    }
    await s.page.keyboard.press("2");
    await s.page.click("#sites .head button:has-text('live')");
    await s.page.selectOption("#since", "start");
    await s.page.waitForFunction(() => [...document.querySelectorAll("#sites .head button")].some(b => b.textContent.startsWith("grown")));
    await s.page.waitForSelector("#sites .row");
    assert.deepEqual(await cut(s.page, "sites"), [], "with growth since");
    await s.page.screenshot({ path: join(shots, "growth-1280.png") });
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("at 800 x 600 pixels, with scroll bars: tables end within their cards, names can be read, a shadow tells of more", async () => {
  const s = await served();
  const withBars = await chromium.launch({ executablePath, args: ["--no-sandbox"], ignoreDefaultArgs: ["--hide-scrollbars"] });
  try {
    const page = await withBars.newPage({ viewport: { width: 800, height: 600 } }), other = await withBars.newPage();
    /// From 0 to 255.
    const brightness = async (x, y) => {
      const png = (await page.screenshot({ clip: { x, y, width: 1, height: 1 } })).toString("base64");
      return other.evaluate(async png => {
        const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
        const context = new OffscreenCanvas(1, 1).getContext("2d");
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, 1, 1).data[0];
      }, png);
    };
    await page.goto(s.url);
    for (const [key, table] of [["1", "table"], ["2", "sites"], ["3", "leaks"], ["4", "memory-table"]]) {
      await page.keyboard.press(key);
      await page.waitForSelector(`#${table} .row`);
      if (table === "sites") {
        await page.click("#sites .row");
        await page.waitForSelector("#site-stack:not([hidden])");
      }
      const { bottom, end, height } = await page.evaluate(id => {
        const host = document.getElementById(id), below = host.parentNode.lastElementChild, last = below.offsetParent ? below : host;
        return { bottom: last.getBoundingClientRect().bottom, end: host.closest(".card").getBoundingClientRect().bottom, height: host.clientHeight };
      }, table);
      assert.ok(bottom <= end, `${table} ends at ${bottom}, its card at ${end}`);
      assert.ok(height > 130, `${table} has a height of ${height}`);
    }
    await page.keyboard.press("1");
    assert.deepEqual(await cut(page, "table"), [], "size classes");
    await page.keyboard.press("2");
    assert.ok(await page.evaluate(() => document.querySelector("#sites .cell.name").clientWidth) >= 300, "the column of sites is narrow");
    await page.evaluate(() => document.getElementById("sites").scrollIntoView());
    const sites = await page.evaluate(() => {
      const { left, top } = document.getElementById("sites").getBoundingClientRect(), { clientWidth, offsetWidth } = document.getElementById("sites");
      return { left, top, width: clientWidth, bar: offsetWidth - clientWidth };
    });
    assert.ok(sites.bar > 0, "there is no scroll bar");
    const above = sites.top + 52;  // above the words of the second row: the first one is chosen
    await page.mouse.move(1, 1);
    assert.ok(await brightness(sites.left + sites.width - 3, above) < 235, "no shadow beside the scroll bar");
    await page.evaluate(() => { document.getElementById("sites").scrollLeft = 10000; });
    assert.equal(await brightness(sites.left + sites.width - 3, above), 255, "a shadow at the end");
    await page.screenshot({ path: join(shots, "where-800x600.png") });
  } finally {
    await withBars.close();
    await s.end();
  }
});

test("a crowded header shows the process id", async () => {
  const s = await served();
  try {
    await changed(s.page, "/api/processes", answer => {
      answer.running = 12;
      answer.rows.push(["other", ...answer.rows[0].slice(1)]);
      for (const row of answer.rows) row[answer.columns.indexOf("arguments")] = ["a title that says at length what this process of the server does"];
    });
    await s.page.reload();
    await s.page.waitForSelector("#family:not([hidden])");
    for (const width of [1280, 1050]) {
      await s.page.setViewportSize({ width, height: 800 });
      const { id, about, beyond } = await s.page.evaluate(() => {
        const about = document.getElementById("about"), range = document.createRange();
        range.setStart(about.firstChild, 0);
        range.setEnd(about.firstChild, about.textContent.indexOf(" ·"));
        return { id: range.getBoundingClientRect().right, about: about.getBoundingClientRect().right,
          beyond: [...document.querySelectorAll("header *")].filter(e => e.offsetParent && e.getBoundingClientRect().right > innerWidth).map(e => e.id) };
      });
      assert.ok(id <= about, `at ${width} pixels the id is cut: it ends at ${id}, its place at ${about}`);
      assert.deepEqual(beyond, [], `at ${width} pixels`);
      await s.page.screenshot({ path: join(shots, `crowded-${width}.png`) });
    }
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

/// What the list of processes offers.
const offered = page => page.evaluate(() => [...document.getElementById("process").options].map(option => option.textContent));

test("of several processes the header says all, and what begins and ends is in it soon", async () => {
  const wait = "import sys, time; x = [bytes(1000) for i in range(3000)]; sys.argv[1:] and time.sleep(100)", python = "/usr/bin/python3";
  const script = `read -r line; ${python} -c "$0" first of two & read -r line; ${python} -c "$0" second of two & wait`;
  const s = await shown(spawn(heapwright, ["live", "--no-browser", "--", "/bin/sh", "-c", script, wait], { stdio: ["pipe", "ignore", "pipe"] }), false, () => {});
  try {
    let asked = 0;
    s.page.on("request", request => { asked += request.url().includes("/api/processes") ? 1 : 0; });
    await becomes(() => asked, times => times >= 3, "the list is asked for again");
    s.child.stdin.write("a\nb\n");
    await becomes(() => offered(s.page), all => all.filter(words => words.startsWith("python3")).length === 2, "two have begun");
    const id = Number((await offered(s.page)).find(words => words.startsWith("python3")).match(/ (\d+) ·/)[1]);
    await s.page.goto(`${s.url}?process=${id}`);
    await s.page.waitForSelector("#family:not([hidden])");
    for (const dark of [false, true]) {
      await s.page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
      for (const width of [1280, 800, 400]) {
        await s.page.setViewportSize({ width, height: 800 });
        const cut = await s.page.evaluate(() => ["program", "about", "process", "family", "status"].filter(id => {
          const e = document.getElementById(id);
          return e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight + 1 || e.getBoundingClientRect().right > innerWidth;
        }));
        assert.deepEqual(cut, [], `at ${width} pixels`);
        await s.page.screenshot({ path: join(shots, `several-${width}-${dark ? "dark" : "light"}.png`) });
      }
    }
    process.kill(id);
    await becomes(() => offered(s.page), all => all.some(words => words.startsWith(`ended: python3 ${id} `)), "one has ended");
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("attached by its id: the page opens on it, and what others have left is one line of the list", async () => {
  const folder = mkdtempSync(join(tmpdir(), "heapwright-page-")), probed = { ...process.env, HEAPWRIGHT_SEGMENT_DIR: folder, LD_PRELOAD: probe };
  for (let i = 0; i < 3; ++i) spawnSync("/bin/echo", [], { env: probed });
  const start = async blocks => {
    const made = spawn("/usr/bin/python3", ["-c", `x = [bytes(1000) for i in range(${blocks})]; print("ready", flush=True); input()`], { env: probed, stdio: ["pipe", "pipe", "inherit"] });
    await line(made, "stdout");
    made.removeAllListeners("exit");
    return made;
  };
  const large = await start(40000), small = await start(10);
  const s = await shown(spawn(heapwright, ["live", "--no-browser", String(small.pid)], { env: { ...process.env, HEAPWRIGHT_SEGMENT_DIR: folder }, stdio: ["ignore", "ignore", "pipe"] }), false,
    () => { large.kill(); small.kill(); rmSync(folder, { recursive: true }); });
  try {
    assert.match(await s.text("about"), new RegExp(`^process ${small.pid} `));
    const left = "… 3 that ended before live began";
    await becomes(() => offered(s.page), all => all.length === 3 && all[0].startsWith(`python3 ${small.pid}`) && all[1].startsWith(`python3 ${large.pid}`) && all[2] === left, "what runs, and one line");
    assert.doesNotMatch(await s.text("notes"), /Most live bytes/);
    await s.page.selectOption("#process", { label: left });
    await becomes(() => offered(s.page), all => all.length === 5 && all.filter(words => words.startsWith("ended: echo")).length === 3, "all");
    assert.match(await s.page.inputValue("#process"), new RegExp(`^${small.pid}-`), "another process is shown");
    await s.page.selectOption("#process", { index: 2 });
    await s.page.waitForFunction(() => document.getElementById("program").textContent === "echo");
    await becomes(() => s.page.evaluate(() => document.getElementById("process").selectedOptions[0]?.textContent), words => words?.startsWith("ended: echo"), "it stands in the list");
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("at 400 pixels names, figures and explanations can be read", async () => {
  const s = await served();
  try {
    await s.page.setViewportSize({ width: 400, height: 800 });
    /// Whether the first row's cells with these titles are within the page; a name has all its width.
    const seen = (table, titles) => s.page.evaluate(([table, titles]) => {
      const heads = [...document.querySelectorAll(`#${table} .head button`)], cells = document.querySelector(`#${table} .row`).children;
      return titles.map(title => {
        const cell = cells[heads.findIndex(head => head.textContent.startsWith(title))], box = cell.getBoundingClientRect();
        return box.left >= 0 && box.right <= innerWidth && (!cell.matches(".name") || cell.scrollWidth <= cell.clientWidth || box.width > 340);
      });
    }, [table, titles]);
    assert.deepEqual(await s.page.evaluate(() => [...document.querySelectorAll(".tile small, .tile span")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)), []);
    await s.page.keyboard.press("2");
    await s.page.waitForSelector("#sites .row");
    assert.deepEqual(await seen("sites", ["site", "called by", "live", "live blocks"]), [true, true, true, true]);
    await becomes(() => s.page.textContent("#sites .row .cell"), name => /^server::remember\S*  make_segment\.cpp:\d+$/.test(name), "a name with all its room");
    /// The first rows' parts stand one below the other, and the rows do not overlap.
    const lines = table => s.page.evaluate(table => [...document.querySelectorAll(`#${table} .row:not([hidden])`)].slice(0, 2).flatMap(row =>
      [row, ...row.children].slice(0, 4).map(e => Math.round(e.getBoundingClientRect().top - document.querySelector(`#${table} .row`).getBoundingClientRect().top))), table);
    await becomes(() => lines("sites"), tops => String(tops) === "0,0,22,39,62,62,84,101", "lines of two rows");
    // The heads of names have a line of their own: the second beside the first, not above a figure's.
    const heads = await s.page.evaluate(() => [...document.querySelectorAll("#sites .head .name")].map(e => e.getBoundingClientRect()).flatMap(box => [Math.round(box.top), box.left]));
    assert.equal(heads[0], heads[2]);
    assert.ok(heads[3] - heads[1] < 80, `${heads}`);
    await s.page.screenshot({ path: join(shots, "sites-400.png"), fullPage: true });
    await s.page.keyboard.press("3");
    await s.page.waitForSelector("#leaks .row");
    assert.deepEqual(await seen("leaks", ["site", "called by", "stays", "live, by age"]), [true, true, true, true]);
    await s.page.keyboard.press("4");
    await s.page.waitForSelector("#memory-table .row");
    assert.deepEqual(await seen("memory-table", ["kind", "RSS", "PSS", "private dirty"]), [true, true, true, true]);
    const narrowest = await s.page.evaluate(() => Math.min(...[...document.querySelectorAll("#memory-parts td:last-child")].map(e => e.clientWidth)));
    assert.ok(narrowest > 250, `an explanation has ${narrowest} pixels`);
    // Wide again, rows have one line.
    await s.page.setViewportSize({ width: 1280, height: 800 });
    await becomes(() => s.page.evaluate(() => [...document.querySelectorAll("#memory-table .row")].slice(0, 2).map(row => row.getBoundingClientRect().top).reduce((a, b) => b - a)), step => step === 23, "rows of one line");
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

for (const width of [400, 800]) {
  test(`at ${width} pixels everything can be reached`, async () => {
    const s = await served();
    try {
      await s.page.setViewportSize({ width, height: 800 });
      for (const [key, view] of [["1", "now"], ["2", "where"], ["3", "leaks"], ["4", "memory"]]) {
        await s.page.keyboard.press(key);
        await s.page.waitForTimeout(700);
        await s.page.screenshot({ path: join(shots, `${view}-${width}.png`), fullPage: true });
        const beyond = await s.page.evaluate(() => {
          const wide = document.documentElement.clientWidth, isInScroller = e => e.closest(".table, .stack, .scroll, [hidden], dialog, details:not([open]), .uplot");
          return [...document.querySelectorAll("body *")].filter(e => e.offsetParent && !isInScroller(e) && e.getBoundingClientRect().right > wide + 1)
            .map(e => `${e.tagName}#${e.id}.${e.className}`);
        });
        assert.deepEqual(beyond, [], `${view}: beyond the right edge`);
      }
      for (const id of ["program", "about", "status", "pause", "help"]) assert.ok(await s.page.isVisible("#" + id), id);
      assert.match(await s.text("about"), /process \d+/);
      await s.page.click("#more summary");
      const panel = await s.page.locator("#more .panel").boundingBox();
      assert.ok(panel.x >= 0 && panel.x + panel.width <= width, "the menu is cut off");
    } finally { await s.end(); }
  });
}

test("says when the program has ended, was killed, counts late or not at all, and when the server is gone", async () => {
  for (const [mode, seconds, status, notes] of [["", 1, /has ended at .*last figures/, /^$/], ["kill", 1, /killed.*last figures/, /^$/],
    ["late", 60, /^live$/, /change since then/], ["dormant", 60, /^dormant/, /does not count yet/]]) {
    const s = await served({ mode, seconds, threads: 20 });
    try {
      await s.page.waitForFunction(source => new RegExp(source).test(document.getElementById("status").textContent), status.source, { timeout: 10000 });
      assert.match(await s.text("notes"), notes);
      if (mode === "late") assert.match(await s.text("live-title"), /change/);
      await s.page.screenshot({ path: join(shots, `state-${mode || "ended"}.png`) });
      if (mode === "kill") {
        await s.page.route("**/api/processes*", route => route.abort());
        await becomes(() => s.text("status"), words => /killed.*last figures; connection lost, retrying$/.test(words), "the connection is lost");
        await s.page.unroute("**/api/processes*");
        await becomes(() => s.text("status"), words => /killed.*last figures$/.test(words), "the connection is there again");
      }
      if (mode === "dormant" || mode === "") {
        s.child.removeAllListeners("exit");
        s.child.kill("SIGKILL");
        await becomes(() => s.text("status"), words => /connection lost, retrying$/.test(words), "the connection is lost");
        assert.match(await s.text("status"), mode === "" ? /^program has ended at .*last figures; / : /^connection/);
        await s.page.screenshot({ path: join(shots, `state-lost-${mode || "ended"}.png`) });
      }
    } finally { await s.end(); }
  }
});

test("says how a program that it has started has ended", async () => {
  for (const [script, status] of [["x=$(echo 1); sleep 1; kill -SEGV $$", /^program was killed by SIGSEGV at about [\d:]+: last figures$/], ["x=$(echo 1); sleep 1; exit 3", /^program has ended.* \(exit code 3\): last figures$/]]) {
    const s = await shown(spawn(heapwright, ["live", "--no-browser", "--sample", "0", "--", "/bin/bash", "-c", script], { stdio: ["ignore", "ignore", "pipe"] }), false, () => {});
    try {
      await becomes(() => s.text("status"), words => status.test(words), "how it has ended");
      await s.page.keyboard.press("2");
      await becomes(() => s.page.textContent("#sites .empty"), words => words === "no samples", "nothing is expected any more");
      assert.deepEqual(s.troubles, []);
    } finally { await s.end(); }
  }
});

test("the Memory view of a program that has ended has its last figures", async () => {
  const s = await shown(spawn(heapwright, ["live", "--no-browser", "--", "/usr/bin/python3", "-c", "import time; time.sleep(3)"], { stdio: ["ignore", "ignore", "pipe"] }), false, () => {});
  try {
    await s.page.waitForFunction(() => /has ended/.test(document.getElementById("status").textContent));
    await s.page.goto("about:blank");
    // What the memory is comes before what state the program is in.
    await s.page.route("**/api/events*", async route => { await new Promise(resolve => setTimeout(resolve, 1000)); await route.continue(); });
    await s.page.goto(s.url + "#memory");
    await s.page.waitForFunction(() => document.getElementById("memory-note").textContent !== "");
    assert.match(await s.text("memory-note"), /^RSS [\d.]+ MiB at [\d:]+, when the mappings were last looked at \(every ten seconds, or less often\)/);
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("a saved run of a program that was killed has its last RSS", async () => {
  const folder = mkdtempSync(join(tmpdir(), "heapwright-page-")), file = join(folder, "run");
  const script = "import os, time; time.sleep(1.5); os.kill(os.getpid(), 9)";
  const saving = spawn(heapwright, ["live", "--no-browser", "--exit-with-program", "--save", file, "--", "/usr/bin/python3", "-c", script], { stdio: "ignore" });
  await new Promise(resolve => saving.on("exit", resolve));
  const s = await shown(spawn(heapwright, ["live", "--no-browser", "--file", file], { stdio: ["ignore", "ignore", "pipe"] }), false, () => rmSync(folder, { recursive: true }));
  try {
    await s.page.waitForFunction(() => /killed/.test(document.getElementById("status").textContent));
    assert.match(await s.text("legend"), /RSS \d/);
    await s.page.waitForSelector("#file:not([hidden])");
    assert.equal(await s.text("file"), "file run");
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("what the program does wrong with memory is told, with its calls, once there is any", async () => {
  const child = spawn(heapwright, ["live", "--no-browser", "--", mistakenServer], { env: { ...process.env, LD_PRELOAD: hardened, HEAPWRIGHT_ON_MISUSE: "report" }, stdio: ["pipe", "ignore", "pipe"] });
  const s = await shown(child, false, () => {});
  try {
    assert.ok(!await s.page.isVisible("#tab-mistakes"));
    await s.page.keyboard.press("5");
    assert.ok(await s.page.isVisible("#timeline"), "there is nothing to be seen yet");
    child.stdin.write("write beyond\nfree twice\nwrite beyond\n");
    await s.page.waitForFunction(() => /has found 3 mistakes of the program/.test(document.getElementById("notes").textContent));
    await s.page.keyboard.press("5");
    await s.page.waitForFunction(() => document.querySelectorAll("#mistakes .report").length === 2);
    assert.doesNotMatch(await s.text("notes"), /mistakes/);
    await s.page.waitForFunction(() => document.getElementById("mistakes-count").textContent === "3 mistakes, 2 reports");
    const [twice, beyond] = await s.page.locator("#mistakes .report").allInnerTexts();
    assert.match(twice, /^double free: 0x/);
    assert.match(twice, /#1 .*close_session.*\n.*#2 .*free_twice/);
    assert.match(beyond, /^write beyond a block: 0x.*\n2 times, first at /);
    await s.page.keyboard.press("/");
    await s.page.keyboard.type("free_twice");
    assert.equal(await s.page.locator("#mistakes .report").count(), 1);
    assert.equal(await s.text("mistakes-count"), "3 mistakes, 1 of 2 reports");
    await s.page.keyboard.press("Escape");
    assert.equal(await s.page.locator("#mistakes .report").count(), 2);
    await s.page.screenshot({ path: join(shots, "mistakes.png") });
    await s.page.setViewportSize({ width: 400, height: 800 });
    assert.ok(await s.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than its window");
    await s.page.screenshot({ path: join(shots, "mistakes-400.png") });
    assert.deepEqual(s.troubles, []);
    await s.page.waitForFunction(() => location.hash === "#mistakes");
    await s.page.reload();
    await s.page.waitForFunction(() => document.querySelectorAll("#mistakes .report").length === 2);
  } finally { await s.end(); }
});

/// What the controls of Where say, and what is below them.
const whereShown = page => page.evaluate(() => ({
  ...Object.fromEntries(["since", "from", "by", "threads", "flame-search", "sites-search"].map(id => [id, document.getElementById(id).value])),
  value: document.querySelector("#flame-value [aria-pressed=true]")?.dataset.value, "own-code": document.getElementById("own-code").checked,
  isZoomed: !document.getElementById("flame-reset").hidden, note: document.getElementById("flame-note").textContent,
  names: [...document.querySelectorAll("#sites .row:not([hidden])")].map(row => row.children[0].textContent),
  sort: document.querySelector("#sites [aria-sort]")?.textContent, stack: document.getElementById("site-stack").textContent,
}));

test("the address has what is shown, and a page that is loaded again shows it again", async () => {
  const child = spawn(heapwright, ["live", "--no-browser", "--sample", "1", "--", namedThreads], { stdio: ["pipe", "pipe", "pipe"] });
  const s = await shown(child, false, () => {});
  const answered = async lines => {
    let answers = "";
    child.stdout.on("data", part => { answers += part; });
    child.stdin.write(lines.join("\n") + "\n");
    await becomes(() => answers, all => all.split("\n").length > lines.length, "the program's answers");
  };
  const hash = () => new URL(s.page.url()).hash;
  const again = async (address = null) => {
    if (address !== null) {
      await s.page.goto("about:blank");
      await s.page.goto(s.url + address);
    } else await s.page.reload();
    await s.page.waitForFunction(() => /^process \d/.test(document.getElementById("about").textContent));
  };
  try {
    await answered(["pools", "cross"]);
    await s.page.keyboard.press("m");
    await s.page.fill("#mark-name", "pools & cross");
    await s.page.keyboard.press("Enter");
    await answered(["ended", "tables"]);
    await s.page.keyboard.press("2");
    await becomes(() => hash(), now => now === "#where", "an address without what is usual");
    await s.page.waitForFunction(() => [...document.getElementById("threads").options].some(o => o.value === "io-*"));
    assert.deepEqual(await s.page.evaluate(() => [...document.getElementById("threads").options].map(o => o.textContent).filter(t => /^io|^all/.test(t)).sort()), ["all", "io-* (3 names)", "io-1", "io-2", "io-3"]);
    await s.page.click("#flame-value >> text=Allocated");
    for (const [list, value] of [["from", "site"], ["by", "line"], ["threads", "io-*"]]) await s.page.selectOption("#" + list, value);
    await s.page.check("#own-code");
    await s.page.fill("#flame-search", "keep_block & <more>");
    await s.page.fill("#flame-search", "keep_block");
    await s.page.fill("#sites-search", "keep");
    await becomes(() => s.text("flame-note"), words => /^2\.86 MiB.*found in 100 %/.test(words), "30 blocks");
    await s.page.click("#flame canvas", { position: { x: 40, y: 27 } });
    await becomes(() => hash(), now => /zoom=\w/.test(now), "the zoom is in the address");
    await s.page.click("#sites .head >> text=called by");
    await s.page.click("#sites .row >> nth=0");
    await becomes(() => hash(), now => /sort=caller&row=\d+/.test(now), "so are the sort order and the site");
    const before = await whereShown(s.page), address = hash();
    assert.match(before.stack, /keep_block/);
    assert.deepEqual({ ...before, note: "", names: "", stack: "" }, { sort: "called by ▴", stack: "", since: "", from: "site", by: "line", threads: "io-*", "flame-search": "keep_block", "sites-search": "keep", value: "allocated", "own-code": true, isZoomed: true, note: "", names: "" });
    assert.equal(before.names.length, 1);
    await again();
    await becomes(() => whereShown(s.page).then(JSON.stringify), now => now === JSON.stringify(before), "all is as it was");
    await becomes(() => hash(), now => now === address, "so is the address");

    // Two lines of one function are two boxes, and the address tells one from the other.
    await s.page.selectOption("#threads", "");
    await becomes(() => s.text("flame-note"), words => /^2[0-9]\.\d MiB/.test(words), "of all threads");
    await s.page.focus("#flame canvas");
    for (const key of ["Enter", "ArrowDown", "ArrowRight"]) await s.page.keyboard.press(key);
    const more = await s.text("flame-detail");
    for (const key of ["ArrowRight", "Enter"]) await s.page.keyboard.press(key);
    const zoomed = await s.text("flame-detail");
    assert.match(more, /^operator\(\) · \S+named_threads\.cpp:\d+ .*· 4\.77 MiB/);
    assert.match(zoomed, /^operator\(\) · \S+named_threads\.cpp:\d+ .*· 488 KiB/);
    await becomes(() => hash(), now => /zoom=\w+\.\w+/.test(now), "the zoom is in the address");
    await again();
    await becomes(() => s.page.isVisible("#flame-reset"), isZoomed => isZoomed, "it is zoomed");
    await s.page.focus("#flame canvas");
    await s.page.keyboard.press("Enter");
    assert.equal(await s.text("flame-detail"), zoomed);

    // Growth, by package, with what all threads have done.
    await s.page.click("#flame-reset");
    await s.page.fill("#flame-search", "");
    for (const [list, value] of [["by", "package"]]) await s.page.selectOption("#" + list, value);
    await s.page.selectOption("#since", { label: "pools & cross" });
    await becomes(() => hash(), now => /since=\d/.test(now) && /by=package/.test(now) && !/threads|zoom|find=/.test(now), "what is usual again is left out");
    await becomes(() => s.text("flame-note"), words => /red grows/.test(words), "growth");
    const grown = await whereShown(s.page);
    assert.ok(grown.since !== "" && grown.names.length > 0);
    await again();
    await becomes(() => whereShown(s.page).then(JSON.stringify), now => now === JSON.stringify(grown), "growth is there again");

    // The other views have a search, and Now a choice of tables.
    await s.page.keyboard.press("1");
    await s.page.click("#table-kind >> text=Threads >> nth=0");
    await s.page.fill("#table-search", "io-2");
    await s.page.click("#table .head >> text=allocations >> nth=0");
    await becomes(() => hash(), now => now === "#now?table=threads&sort=-allocations&find=io-2", "the table");
    await again();
    await becomes(() => s.text("table-count"), count => /^0 of|^1 of/.test(count), "its search");
    assert.equal(await s.page.getAttribute("#table-kind [data-kind=threads]", "aria-pressed"), "true");
    for (const [key, view, field] of [["3", "leaks", "leaks-search"], ["4", "memory", "memory-search"]]) {
      await s.page.keyboard.press(key);
      await s.page.fill("#" + field, "a b%c");
      await becomes(() => hash(), now => now === `#${view}?find=a+b%25c`, view);
      await s.page.click(`#${view === "leaks" ? "leaks" : "memory-table"} .head button >> nth=0`);
      await becomes(() => hash(), now => now === `#${view}?sort=label&find=a+b%25c`, view);
      await again();
      await becomes(() => hash(), now => now === `#${view}?sort=label&find=a+b%25c`, view);
      await becomes(() => s.page.inputValue("#" + field), words => words === "a b%c", view);
      assert.ok(await s.page.isVisible("#view-" + view));
    }
    assert.deepEqual(s.troubles, []);

    // Whatever else an address has, the page says what is wrong, or shows what is usual, and goes on.
    for (const [nonsense, view] of [["#where?value=zzz&by=toString&threads=%", "where"], ["#where?sort=-toString&row=constructor", "where"], ["#leaks?sort=--&row=1", "leaks"], ["#where?since=77", "where"], ["#where?from=__proto__&constructor=1", "where"],
      ["#where?zoom=zz.y..&find=%FF&libraries=x", "where"], ["#toString?find=x", "now"], ["#now?table=toString", "now"]]) {
      await again(nonsense);
      await becomes(() => s.page.isVisible("#view-" + view), isSeen => isSeen, nonsense);
      await s.page.keyboard.press("2");
      await s.page.click("#flame-value >> text=At the peak");
      if (nonsense.includes("threads=")) await s.page.evaluate(() => { document.getElementById("threads").value = ""; document.getElementById("threads").dispatchEvent(new Event("change")); });
      await becomes(() => whereShown(s.page).then(({ value, note, names }) => `${value} ${note} ${names.length}`), words => /^peak \d.*MiB.* [1-9]\d*$/.test(words), nonsense);
      assert.deepEqual(s.troubles.filter(words => !/status of 40[04]/.test(words)), [], nonsense);
    }
  } finally { await s.end(); }
});

test("where samples were lost nothing is called exact", async () => {
  const program = 'import ctypes; malloc = ctypes.CDLL(None).malloc\nfor _ in range(200_000): malloc(1)';
  const words = ["live", "--no-browser", "--sample", "1", "--", "/bin/sh", "-c", 'ulimit -v 100000; exec /usr/bin/python3 -c "$0"', program];
  const s = await shown(spawn(heapwright, words, { stdio: ["ignore", "ignore", "pipe"] }), false, () => {});
  try {
    await s.page.waitForFunction(() => /samples were lost for want of room/.test(document.getElementById("notes").textContent));
    await s.page.keyboard.press("2");
    await s.page.waitForFunction(() => /every block, but those that were lost/.test(document.getElementById("flame-note").textContent));
    await s.page.waitForSelector("#sites .row");
    assert.doesNotMatch(await s.page.locator("#sites").innerHTML(), /, exact/);
    assert.deepEqual(s.troubles, []);
  } finally { await s.end(); }
});

test("a snapshot is the page as a file: it shows all views without a server, and hides what needs one", async () => {
  const folder = mkdtempSync(join(tmpdir(), "heapwright-page-")), file = join(folder, "run.html");
  const command = ["/bin/bash", "-c", 'exec -a "x</script><b id=evil>" "$0"', namedThreads];
  const kept = spawnSync(heapwright, ["live", "--no-browser", "--exit-with-program", "--sample", "1", "--snapshot", file, "--", ...command], { input: "pools\ncross\nmarkup\ntables\n" });
  assert.equal(kept.status, 0, String(kept.stderr));
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } }), troubles = [], requests = [];
  page.on("pageerror", error => troubles.push(error.message));
  page.on("console", message => { if (message.type() === "error") troubles.push(message.text()); });
  page.on("request", request => { if (!/^(file|data|blob):/.test(request.url())) requests.push(request.url()); });
  try {
    await page.goto("file://" + file);
    await page.waitForFunction(() => document.getElementById("live").textContent !== "");
    assert.equal(await page.textContent("#program"), "script><b id=evil>");
    assert.match(await page.textContent("#status"), /^snapshot of .*: program has ended/);
    assert.match(await page.textContent("#live"), /^5\.\d+ MiB$/);
    const needing = page.locator(".needs-server");
    assert.ok(await needing.count() > 8);
    await page.click("#more summary");
    for (const one of await needing.all()) assert.ok(!await one.isVisible(), await one.textContent());
    await page.click("#more summary");
    for (const kind of ["classes", "threads", "cells"]) {
      await page.click(`#table-kind [data-kind=${kind}]`);
      await page.waitForSelector("#table .row");
    }
    await page.keyboard.press("2");
    const seen = async (what, isRight) => {
      await becomes(() => whereShown(page).then(JSON.stringify), text => isRight(JSON.parse(text)), what);
      return whereShown(page);
    };
    const isThere = now => /^\d.*(MiB|KiB|blocks)/.test(now.note) && now.names.length > 0;
    for (const value of ["peak", "allocated", "count", "live"]) {
      await page.click(`#flame-value [data-value=${value}]`);
      await seen(value, now => now.value === value && isThere(now));
      for (const [list, choice, usual] of [["from", "site", "root"], ["by", "line", "function"], ["by", "package", "function"]]) {
        await page.selectOption("#" + list, choice);
        await seen(`${value} ${choice}`, now => now[list] === choice && isThere(now));
        await page.selectOption("#" + list, usual);
      }
      await page.check("#own-code");
      await seen(value + ", only my code", now => now["own-code"] && isThere(now));
      await page.uncheck("#own-code");
    }
    const names = await page.evaluate(() => [...document.getElementById("threads").options].map(o => o.value));
    assert.deepEqual([...names].sort(), ["", "</script><b>x", "io-1", "io-2", "io-3", "named_threads", "work-1", "work-2"]);
    for (const name of names.slice(1)) {
      await page.selectOption("#threads", name);
      await seen(name, now => now.threads === name && isThere(now));
    }
    await page.selectOption("#threads", "io-2");
    assert.match((await seen("io-2", now => now.threads === "io-2")).note, /^879 KiB/);
    // Not every combination is there; what is not is said, and what was shown stays.
    await page.selectOption("#by", "package");
    const refused = await seen("by package of one name", now => /not in the snapshot/.test(now.note));
    assert.deepEqual([refused.by, refused.threads, refused.names.length], ["function", "io-2", 1]);
    await page.click("#sites .row");
    await page.waitForSelector("#site-source .at");
    assert.match(await page.textContent("#site-source .at"), /std::malloc\(block_bytes\)/);
    await page.keyboard.press("3");
    await becomes(() => page.textContent("#leaks"), words => /watched for|samples|Site|site/.test(words), "leaks");
    await page.keyboard.press("4");
    await becomes(() => page.textContent("#memory-note"), words => words !== "", "memory");
    await page.keyboard.press("2");
    await becomes(() => page.url(), url => /#where\?threads=io-2(&row=\d+)?$/.test(url), "a file has an address, too");
    await page.reload();
    assert.match((await seen("io-2 again", now => now.threads === "io-2" && isThere(now))).note, /^879 KiB/);
    await page.screenshot({ path: join(shots, "snapshot.png") });
    assert.equal(await page.locator("#evil, b[id]:not(#live, #rss, #rate, #peak)").count(), 0, "text has become markup");
    assert.deepEqual([troubles, requests], [[], []]);
    // Another process than those that it has, as an address may ask for.
    for (const process of ["toString", "__proto__", "1", "%"]) {
      await page.goto(`file://${file}?process=${process}`);
      await page.waitForFunction(() => document.getElementById("live").textContent !== "");
    }
    assert.deepEqual(troubles, []);
  } finally {
    await page.close();
    rmSync(folder, { recursive: true });
  }
});

test("memory of a program on libheapwright, with the probe and without; a program that becomes another; its children", async () => {
  const script = "import time; x = [bytes(i % 3000) for i in range(100000)]; x = x[::5]; y = bytearray(20_000_000); print('ready', flush=True); time.sleep(100)";
  const environment = { ...process.env, LD_PRELOAD: library };
  const watched = await shown(spawn(heapwright, ["live", "--no-browser", "--", "/bin/sh", "-c", 'true; /bin/sleep 100 > /dev/null 2>&1 & exec /usr/bin/python3 -c "$0"', script],
    { env: environment, stdio: ["ignore", "ignore", "pipe"] }), false, () => {});
  try {
    await watched.page.waitForFunction(() => document.getElementById("program").textContent.startsWith("python3"));
    await watched.page.waitForFunction(() => /MiB/.test(document.getElementById("live").textContent) && parseFloat(document.getElementById("live").textContent) > 40);
    await watched.page.keyboard.press("4");
    await watched.page.waitForFunction(() => /free, beside blocks in use/.test(document.getElementById("memory-parts").textContent));
    assert.match(await watched.text("memory-python"), /^Arenas of Python, about \d.* MiB of address space: invisible without --python-objects\./);
    // Four of five blocks of all sizes are gone.
    await watched.page.waitForFunction(() => /^\d\d % of RSS, .* is free in spans of \d+ size classes;.*See classes\.steps_per_doubling, spans of the recipe \(docs\/recipes\.md#.*Try fewer size classes/.test(document.getElementById("memory-findings").textContent));
    assert.deepEqual(await watched.page.locator("#memory-findings li").first().locator("code").allTextContents(), ["classes.steps_per_doubling", "spans", ".classes = {.steps_per_doubling = 4}"]);
    await watched.page.click("text=Size classes of the heap");
    await watched.page.waitForSelector("#memory-table .row");
    await watched.page.screenshot({ path: join(shots, "memory-heap.png") });
    await watched.page.waitForFunction(() => [...document.getElementById("process").options].some(o => o.textContent.startsWith("sleep")));
    await watched.page.selectOption("#process", await watched.page.evaluate(() => [...document.getElementById("process").options].find(o => o.textContent.startsWith("sleep")).value));
    await watched.page.waitForFunction(() => document.getElementById("program").textContent === "sleep");
    const id = Number((await watched.text("about")).match(/^process (\d+)/)[1]);
    await watched.page.goto(`${watched.url}?process=${id}`);
    await watched.page.waitForFunction(() => document.getElementById("program").textContent === "sleep");
    assert.match(watched.page.url(), new RegExp(`process=${id}-`), "the address has the name, by which its list knows it");
    // A page that is saved opens with the process that is shown.
    const folder = mkdtempSync(join(tmpdir(), "heapwright-page-")), file = join(folder, "sleep.html");
    writeFileSync(file, await (await fetch(`${watched.url}api/snapshot?process=${id}`)).text());
    const kept = await browser.newPage();
    kept.on("pageerror", error => watched.troubles.push(error.message));
    await kept.goto(`file://${file}`);
    await kept.waitForFunction(() => document.getElementById("program").textContent === "sleep");
    await kept.close();
    rmSync(folder, { recursive: true });
    process.kill(id);
    await watched.page.waitForFunction(() => /program is gone|killed|has ended/.test(document.getElementById("status").textContent));
    assert.deepEqual(watched.troubles, []);
  } finally { await watched.end(); }

  const program = spawn("/usr/bin/python3", ["-c", script], { env: environment, stdio: ["ignore", "pipe", "inherit"] });
  await line(program, "stdout");
  const bare = await shown(spawn(heapwright, ["live", "--no-browser", String(program.pid)], { stdio: ["ignore", "ignore", "pipe"] }), false, () => program.kill());
  program.removeAllListeners("exit");
  try {
    assert.match(await bare.text("notes"), /no probe/);
    assert.match(await bare.text("legend"), /live.*RSS/);
    assert.doesNotMatch(await bare.text("legend"), /allocated/, "its rate of allocation is not known");
    assert.equal(await bare.page.locator("#timeline .u-axis").count(), 2, "an axis without a line");
    assert.ok(!await bare.page.isVisible("#tab-where") && !await bare.page.isVisible("#table"));
    await bare.page.keyboard.press("2");
    assert.ok(await bare.page.isVisible("#timeline"), "a view without figures is not gone to");
    await bare.page.keyboard.press("4");
    await bare.page.waitForFunction(() => /blocks, and free ones that threads keep/.test(document.getElementById("memory-parts").textContent));
    await bare.page.screenshot({ path: join(shots, "memory-bare.png") });
    // A snapshot of it has no more.
    const folder = mkdtempSync(join(tmpdir(), "heapwright-page-")), file = join(folder, "bare.html");
    assert.equal(spawnSync(heapwright, ["live", "--snapshot", file, String(program.pid)]).status, 0);
    const kept = await browser.newPage();
    kept.on("pageerror", error => bare.troubles.push(error.message));
    await kept.goto(`file://${file}#memory`);
    await kept.waitForFunction(() => /blocks, and free ones that threads keep/.test(document.getElementById("memory-parts").textContent));
    assert.match(await kept.textContent("#status"), /^snapshot of /);
    assert.ok(!await kept.isVisible("#tab-where"));
    await kept.close();
    rmSync(folder, { recursive: true });
    program.kill("SIGKILL");
    await bare.page.waitForFunction(() => /program is gone: last figures/.test(document.getElementById("status").textContent));
    assert.deepEqual(bare.troubles, []);
  } finally { await bare.end(); }
});
