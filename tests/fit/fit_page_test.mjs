// The report of a fit in a real browser, wide and narrow: nothing is cut off, nothing overlaps, and it says what was found.
//
//   node fit_page_test.mjs PACKAGES CHROMIUM HEAPWRIGHT FITTED_TO     screenshots go to PACKAGES/screenshots
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

const [packages, executablePath, heapwright, program] = process.argv.slice(2);
const { chromium } = createRequire(join(packages, "package.json"))("playwright-core");
const shots = join(packages, "screenshots"), folder = mkdtempSync(join(tmpdir(), "heapwright-fit-"));
mkdirSync(shots, { recursive: true });

let browser;
const report = what => join(folder, what, "report.html");
before(async () => {
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  for (const what of ["rounding", "nothing"]) {
    // On a busy machine noise may look like a harm, and then nothing is fitted.
    for (let tries = 0, verdict; verdict !== (what === "rounding" ? "fitted" : "keep-default"); ++tries) {
      assert.ok(tries < 4, `of ${what}: ${verdict}`);
      const done = spawnSync(heapwright, ["fit", "--for", "memory", "--minutes", "0.3", "--only", "glibc", "-o", join(folder, what), "--json", "-", "--", program, what]);
      assert.equal(done.status, 0, done.stderr.toString());
      ({ verdict } = JSON.parse(done.stdout.toString()));
    }
  }
});
after(async () => { await browser.close(); rmSync(folder, { recursive: true }); });

async function opened(what, width, dark = false) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: dark ? "dark" : "light" });
  const troubles = [];
  page.on("pageerror", error => troubles.push(error.message));
  page.on("console", message => { if (message.type() === "error") troubles.push(message.text()); });
  await page.goto(pathToFileURL(report(what)).href);
  await page.screenshot({ path: join(shots, `fit-${what}-${width}${dark ? "-dark" : ""}.png`), fullPage: true });
  assert.deepEqual(troubles, []);
  return page;
}

for (const [what, width, dark] of [["rounding", 1280, false], ["rounding", 1280, true], ["rounding", 800, false], ["rounding", 400, false], ["nothing", 400, false]]) {
  test(`of ${what}, at ${width} pixels${dark ? ", dark" : ""}, all is in sight and nothing overlaps`, async () => {
    const page = await opened(what, width, dark);
    const wrong = await page.evaluate(() => {
      const wrong = [];
      if (document.documentElement.scrollWidth > innerWidth) wrong.push(`the page is ${document.documentElement.scrollWidth} wide`);
      for (const e of [...document.querySelectorAll("svg text, td, th, li, p, h2")].filter(e => e.textContent && e.getClientRects().length)) {
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

test("what was found stands first, with the proof and the recipe behind it", async () => {
  const page = await opened("rounding", 1280);
  assert.match(await page.textContent("#sentence"), /^peak RSS -\d+ %/);
  assert.match(await page.textContent("#recipe pre"), /\/\/ Rounding[ ,][^{}]*\n  r\.classes\.(exact|steps_per_doubling) = /);
  const rows = await page.$$eval("#proofs tbody tr", all => all.map(row => row.firstElementChild.textContent));
  assert.deepEqual(rows.slice(0, 2), ["glibc", "heapwright, the default"]);
  assert.match(rows[2], /^fitted: \w/, "it names the candidate");
  assert.equal(rows.length, 3);
  assert.match(await page.textContent("#proofs .chosen"), /0\.9\d× \(/);
  assert.equal(await page.textContent("#recipe pre"), readFileSync(join(folder, "rounding", "recipe.hpp"), "utf8"));
  await page.locator("#plane circle").last().hover();  // the one on top
  assert.match(await page.textContent("#tip"), /peak [−+]?\d/);
  await page.close();
});

test("a figure of less than two per cent has no colour", async () => {
  for (const what of ["rounding", "nothing"]) {
    const page = await opened(what, 1280);
    const coloured = await page.$$eval("#proofs small.better, #proofs small.worse", all => all.map(e => [e.className, parseFloat(e.textContent)]));
    for (const [colour, ratio] of coloured) assert.ok(colour === "better" ? ratio <= .98 : ratio >= 1.02, `${ratio} is ${colour}`);
    await page.close();
  }
});

test("where nothing fits there is no recipe on the page", async () => {
  const page = await opened("nothing", 1280);
  assert.match(await page.textContent("#sentence"), /^keep the default/);
  assert.equal(await page.$("#recipe"), null);
  assert.equal(await page.$("#deploy"), null);
  const rows = await page.$$eval("#proofs tbody tr", all => all.map(row => row.firstElementChild.textContent));
  assert.deepEqual(rows.filter(name => name.startsWith("fitted")), [], "a recipe that is not the answer was tried");
  await page.close();
});
