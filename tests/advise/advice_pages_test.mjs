// Advice in a real browser: the page of `advise`, wide and narrow, and the call sites of `live --advice`.
//
//   node advice_pages_test.mjs PACKAGES CHROMIUM HEAPWRIGHT PLANTED     screenshots go to PACKAGES/screenshots
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

const [packages, executablePath, heapwright, planted] = process.argv.slice(2);
const { chromium } = createRequire(join(packages, "package.json"))("playwright-core");
const shots = join(packages, "screenshots"), folder = mkdtempSync(join(tmpdir(), "heapwright-advice-"));
mkdirSync(shots, { recursive: true });

const file = (what, ending) => join(folder, `${what}.${ending}`);
const advised = what => JSON.parse(readFileSync(file(what, "json"))).advice.find(one => one.is_worth_it || one.saves === null);
const did = (...words) => {
  const done = spawnSync(heapwright, words);
  assert.equal(done.status, 0, done.stderr.toString());
};

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  for (const what of ["pool", "handing"]) {
    did("record", "-o", file(what, "trace"), "--", planted, what);
    // On a busy machine noise may hide what a pool saves.
    for (let tries = 0; tries < 4 && !(tries && advised(what)); ++tries)
      did("advise", file(what, "trace"), "--json", file(what, "json"), "--html", file(what, "html"));
  }
});
after(async () => { await browser.close(); rmSync(folder, { recursive: true }); });

async function opened(url, name, width, dark = false) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: dark ? "dark" : "light" });
  const troubles = [];
  page.on("pageerror", error => troubles.push(error.message));
  page.on("console", message => { if (message.type() === "error") troubles.push(message.text()); });
  await page.goto(url);
  await page.screenshot({ path: join(shots, `${name}-${width}${dark ? "-dark" : ""}.png`), fullPage: true });
  assert.deepEqual(troubles, []);
  return page;
}

for (const [what, width, dark] of [["pool", 1280, false], ["pool", 800, true], ["pool", 400, false], ["handing", 400, false]]) {
  test(`of ${what}, at ${width} pixels${dark ? ", dark" : ""}, all is in sight`, async () => {
    const page = await opened(pathToFileURL(file(what, "html")).href, `advise-${what}`, width, dark);
    const { kind, seen, site, code } = advised(what);
    const text = await page.textContent("body");
    for (const said of [kind, seen, site.name, code[0]]) assert.ok(text.includes(said), `${said}: not in ${text}`);
    assert.match(text, what === "pool" ? /Saves [\d.]+ m?s/ : /What it saves is not predicted/);
    const wrong = await page.evaluate(() => [...document.querySelectorAll("h1, h2, p, li, .bars > *")].filter(e => e.textContent && e.getClientRects().length)
      .filter(e => { const box = e.getBoundingClientRect(); return box.left < -.5 || box.right > innerWidth + .5 || parseFloat(getComputedStyle(e).fontSize) < 12; }).map(e => e.textContent));
    assert.deepEqual(wrong, []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await page.close();
  });
}

test("live shows it beside the call site", async () => {
  const child = spawn(heapwright, ["live", "--no-browser", "--port", "0", "--sample", "4096", "--advice", file("pool", "json"), "--", planted, "pool", "1000"], { stdio: ["ignore", "ignore", "pipe"] });
  try {
    const url = await new Promise((resolve, reject) => {
      let said = "";
      child.stderr.on("data", part => { const found = (said += part).match(/http:\S+/); if (found) resolve(found[0]); });
      child.on("exit", code => reject(new Error(`ended with ${code}: ${said}`)));
    });
    const { site, seen, code } = advised("pool");
    const page = await opened(url, "live-advice", 1280);
    await page.getByRole("tab", { name: /where/i }).click();
    const row = page.locator("#sites [role=row]", { hasText: `:${site.line}` }).first();
    await row.waitFor();
    assert.match(await row.textContent(), /pool/);
    await row.click();
    const stack = await page.textContent("#site-stack");
    for (const said of ["advice: pool", "Saves ", "of the time in malloc", seen, code[0]]) assert.ok(stack.includes(said), `${said}: not in ${stack}`);
    await page.screenshot({ path: join(shots, "live-advice-chosen.png") });
    await page.close();
  } finally {
    child.removeAllListeners("exit");
    child.kill("SIGINT");
  }
});

test("what is no advice is refused", () => {
  writeFileSync(file("other", "json"), "{\"advice\": [1]}");
  for (const given of [file("other", "json"), file("pool", "html"), file("nothing", "json"), folder]) {
    const done = spawnSync(heapwright, ["live", "--no-browser", "--advice", given, "--", "true"]);
    assert.equal(done.status, 125, given);
    assert.match(done.stderr.toString(), /^heapwright: --advice .*\n$/);
  }
});
