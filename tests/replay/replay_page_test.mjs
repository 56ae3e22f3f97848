// The page of a replay in a real browser, wide and narrow: nothing is cut off, the curves can be told apart and read.
//
//   node replay_page_test.mjs PACKAGES CHROMIUM HEAPWRIGHT REPLAYED ABORTING_MALLOC     screenshots go to PACKAGES/screenshots
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

const [packages, executablePath, heapwright, replayed, aborting] = process.argv.slice(2);
const { chromium } = createRequire(join(packages, "package.json"))("playwright-core");
const shots = join(packages, "screenshots"), folder = mkdtempSync(join(tmpdir(), "heapwright-replay-"));
mkdirSync(shots, { recursive: true });

let browser;
const file = join(folder, "page.html"), timed = join(folder, "timed.html");
before(async () => {
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const ran = (words, code) => {
    const done = spawnSync(heapwright, words);
    assert.equal(done.status, code, done.stderr.toString());
  };
  for (const what of ["growing", "odd"]) ran(["record", "-o", join(folder, what), "--", replayed, what], 0);
  ran(["replay", join(folder, "growing"), "--only", "heapwright", "--rounds", "2", "--html", file], 0);
  ran(["replay", join(folder, "odd"), "--only", "glibc", "--time", "--rounds", "2", "--with", `a-name-that-is-long-enough-to-be-cut=${aborting}`, "--html", timed], 1);
});
after(async () => { await browser.close(); rmSync(folder, { recursive: true }); });

async function opened(width, dark, shown = file) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: dark ? "dark" : "light" });
  const troubles = [];
  page.on("pageerror", error => troubles.push(error.message));
  page.on("console", message => { if (message.type() === "error") troubles.push(message.text()); });
  await page.goto(pathToFileURL(shown).href);
  await page.screenshot({ path: join(shots, `replay-${shown === timed ? "time-" : ""}${width}${dark ? "-dark" : ""}.png`), fullPage: true });
  assert.deepEqual(troubles, []);
  return page;
}

for (const [width, dark, shown] of [[1280, false, file], [1280, true, file], [800, false, file], [400, false, file], [400, false, timed]]) {
  test(`at ${width} pixels${dark ? ", dark" : ""}${shown === timed ? ", without memory" : ""}, all is in sight and nothing overlaps`, async () => {
    const page = await opened(width, dark, shown);
    const wrong = await page.evaluate(() => {
      const wrong = [];
      if (document.documentElement.scrollWidth > innerWidth) wrong.push(`the page is ${document.documentElement.scrollWidth} wide`);
      const texts = [...document.querySelectorAll("svg text, td, th, li, p")].filter(e => e.textContent && e.getClientRects().length);
      for (const e of texts) {
        const box = e.getBoundingClientRect();
        if (box.left < -0.5 || box.right > innerWidth + 0.5) wrong.push(`cut off: ${e.textContent}`);
        if (parseFloat(getComputedStyle(e).fontSize) < 12) wrong.push(`small: ${e.textContent}`);
      }
      const boxes = [...document.querySelectorAll("svg text")].map(e => [e.textContent, e.getBoundingClientRect()]);
      boxes.forEach(([a, x], i) => boxes.slice(i + 1).forEach(([b, y]) => {
        if (x.left < y.right - 1 && y.left < x.right - 1 && x.top < y.bottom - 2 && y.top < x.bottom - 2) wrong.push(`"${a}" lies over "${b}"`);
      }));
      return wrong;
    });
    assert.deepEqual(wrong, []);
    await page.close();
  });
}

test("the legend tells the values under the pointer, and shows one curve alone", async () => {
  const page = await opened(1280, false);
  assert.equal(await page.locator("svg .curve").count(), 3, "two mallocs, and the program itself");
  const box = await page.locator("#plot svg").boundingBox();
  await page.mouse.move(box.x + box.width * 0.6, box.y + box.height / 2);
  const words = await page.locator("#legend li").allTextContents();
  assert.equal(words.length, 4);
  for (const word of words) assert.match(word, /^(glibc|heapwright|recorded|live)3\d\.\d MiB$|^live0 KiB$/);
  await page.locator("#legend button", { hasText: "heapwright" }).click();
  assert.equal(await page.locator("svg.dimmed .curve.chosen").count(), 1);
  await page.locator("#legend button", { hasText: "heapwright" }).click();
  assert.equal(await page.locator("svg.dimmed").count(), 0);
  await page.close();
});

test("a malloc that failed says why; without memory there is no picture of it", async () => {
  const page = await opened(1280, false, timed);
  assert.match(await page.textContent("#table td.failed"), /SIGABRT.*no such block/);
  assert.equal(await page.locator("#memory").count(), 0);
  const titles = await page.locator("#table thead th").allTextContents();
  assert.deepEqual(titles, ["malloc", "Page faults", "Time in malloc"]);
  await page.close();
});
