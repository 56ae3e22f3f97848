// The page of a comparison in a real browser, wide and narrow: nothing is cut off, nothing lies over something else.
//
//   node compare_page_test.mjs PACKAGES CHROMIUM HEAPWRIGHT FIXTURES      screenshots go to PACKAGES/screenshots
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const [packages, executablePath, heapwright, fixtures] = process.argv.slice(2);
const { chromium } = createRequire(join(packages, "package.json"))("playwright-core");
const shots = join(packages, "screenshots"), folder = mkdtempSync(join(tmpdir(), "heapwright-compare-"));
mkdirSync(shots, { recursive: true });

let browser, table;
const served = join(folder, "served.html"), pointed = join(folder, "pointed.html");
const port = await new Promise(found => {
  const probe = createServer().listen(0, "127.0.0.1", () => { const { port } = probe.address(); probe.close(() => found(port)); });
});
const file = join(folder, "page.html"), plain = join(fixtures, "libplain_allocator.so");
before(async () => {
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const names = ["plain", "of-a-name-that-is-long-enough-to-be-cut", "third", "fourth", "fifth"];
  const made = spawnSync(heapwright, ["compare", "--only", "heapwright", "--rounds", "3", "--html", file,
    ...names.flatMap(name => ["--with", `${name}=${plain}`]), "--with", `broken=${join(fixtures, "libaborting_allocator.so")}`, "--", "sh", "-c", "true"]);
  assert.equal(made.status, 1, made.stderr);
  table = made.stdout;
  const server = join(dirname(fileURLToPath(import.meta.url)), "fixtures", "server.py");
  const driver = `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port} && echo speed >&3 && cat <&3'`;
  const driven = spawnSync(heapwright, ["compare", "--only", "heapwright", "--with", `plain=${plain}`, "--rounds", "3", "--html", served, "--driver", driver,
    "--ready-port", `${port}`, "--figure", "speed:higher=speed: (.*)", "--figure", "figure of a very long name=speed: (.*)", "--", "/usr/bin/python3", server, `${port}`]);
  assert.equal(driven.status, 0, driven.stderr);
  const scattered = spawnSync(heapwright, ["compare", "--only", "heapwright", "--rounds", "2", "--html", pointed, "--", join(fixtures, "scattered"), "300000", "0", "3"]);
  assert.equal(scattered.status, 0, scattered.stderr);
});
after(async () => { await browser.close(); rmSync(folder, { recursive: true }); });

async function opened(width, dark, shown = file) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: dark ? "dark" : "light" });
  const troubles = [];
  page.on("pageerror", error => troubles.push(error.message));
  page.on("console", message => { if (message.type() === "error") troubles.push(message.text()); });
  await page.goto(pathToFileURL(shown).href);
  await page.screenshot({ path: join(shots, `compare-${shown === served ? "server-" : shown === pointed ? "findings-" : ""}${width}${dark ? "-dark" : ""}.png`), fullPage: true });
  assert.deepEqual(troubles, []);
  return page;
}

for (const [width, dark, shown] of [[1280, false, file], [1280, true, file], [800, false, file], [400, false, file],
  [1280, false, served], [800, false, served], [400, false, served], [400, false, pointed]]) {
  test(`${shown === served ? "of a server, " : shown === pointed ? "with findings, " : ""}at ${width} pixels${dark ? ", dark" : ""}, all is in sight and nothing overlaps`, async () => {
    const page = await opened(width, dark, shown);
    const wrong = await page.evaluate(() => {
      const wrong = [];
      const inside = e => {
        const box = e.getBoundingClientRect(), frame = e.closest(".scroll")?.getBoundingClientRect() ?? { left: 0, right: innerWidth };
        return box.left >= frame.left - 0.5 && box.right <= frame.right + 0.5;
      };
      if (document.documentElement.scrollWidth > innerWidth) wrong.push(`the page is ${document.documentElement.scrollWidth} wide`);
      const texts = [...document.querySelectorAll("svg text, td, th, .tile span, .tile b, li, p")].filter(e => e.textContent && e.getClientRects().length);
      for (const e of texts) if (!inside(e)) wrong.push(`cut off: ${e.textContent}`);
      for (const e of texts) if (parseFloat(getComputedStyle(e).fontSize) < 12) wrong.push(`small: ${e.textContent}`);
      for (const picture of document.querySelectorAll("#plots svg")) {
        const boxes = [...picture.querySelectorAll("text")].map(e => [e.textContent, e.getBoundingClientRect()]);
        boxes.forEach(([a, x], i) => boxes.slice(i + 1).forEach(([b, y]) => {
          if (x.left < y.right - 1 && y.left < x.right - 1 && x.top < y.bottom - 2 && y.top < x.bottom - 2) wrong.push(`"${a}" lies over "${b}"`);
        }));
      }
      return wrong;
    });
    assert.deepEqual(wrong, []);
    await page.close();
  });
}

test("a label at either end of an axis stays within its card", async () => {
  const page = await opened(400, false);
  for (const [least, most] of [[.0206, .0306], [.0294, .0394]]) {  // the axis begins at 20.0 ms, then ends at 40.0 ms
    const out = await page.evaluate(([least, most]) => {
      for (const row of data.rows) for (const [i, sample] of (row.samples ?? []).entries()) Object.assign(sample, { user_seconds: i ? most : least, system_seconds: 0 });
      drawnFor = 0;
      draw();
      const texts = [...document.querySelectorAll("#plots .card:nth-child(2) svg text.tick")];
      return { shown: texts.map(e => e.textContent), out: texts.filter(e => {
        const box = e.getBoundingClientRect(), picture = e.closest("svg").getBoundingClientRect();
        return box.left < picture.left - 1 || box.right > picture.right + 1;
      }).map(e => e.textContent) };
    }, [least, most]);
    assert.ok(out.shown.includes(least < .025 ? "20.0 ms" : "40.0 ms"), out.shown.join());
    assert.deepEqual(out.out, []);
  }
  await page.close();
});

test("what is the same or unclear has no percentage and no colour of better or worse", async () => {
  const page = await opened(1280, false);
  const seen = await page.evaluate(() => {
    const row = data.rows.find(row => row.name === "heapwright");
    return [...document.querySelectorAll(".tile")].map((tile, i) => {
      const big = tile.querySelector("b"), ratio = row.metrics[metrics[i].key].ratio;
      return { verdict: ratio.verdict, text: big.textContent, shade: big.className };
    });
  });
  assert.equal(seen.length, 5);
  for (const { verdict, text, shade } of seen) {
    if (verdict === "same" || verdict === "unclear") assert.deepEqual([text, shade], [verdict, "same"]);
    else assert.match(text, verdict === "less" ? /^−[1-9]\d* %$/ : /^\+[1-9]\d* %$/);
  }
  await page.close();
});

test("intervals are those of the terminal, and a narrow page speaks of no plot of ratios", async () => {
  const page = await opened(400, false);
  for (const text of await page.locator("#table small").allTextContents())
    if (text) assert.ok(table.includes(text.match(/\(.*\)/)[0]), `${text} in ${table}`);
  for (const text of await page.locator("#plots h2 small").allTextContents()) assert.match(text, /; beside each name, the ratio to glibc$/);
  await page.close();
});

test("the verdicts come first, and the row that failed is told", async () => {
  const page = await opened(1280, false);
  const verdicts = await page.locator("#verdicts li").allTextContents();
  assert.equal(verdicts.length, 6);
  assert.match(verdicts[0], /^heapwright\b/);
  assert.match(await page.textContent("#trouble"), /broken: was killed by SIGABRT/);
  await page.close();
});

test("findings name the fields of a recipe; where there are none, there is no list", async () => {
  const page = await opened(1280, false, pointed);
  assert.match((await page.locator("#findings li").allTextContents())[0],
    /^heapwright, at its end: \d\d % of RSS, .* of blocks of 240 bytes\. See spans of the recipe \(docs\/recipes\.md#.*Try shorter spans/);
  await page.close();
  const without = await opened(1280, false);
  assert.equal(await without.locator("#findings").count(), 0);
  await without.close();
});

test("figures of a driver are drawn and judged, by the way that is better", async () => {
  const page = await opened(1280, false, served);
  assert.match(await page.textContent("#command"), /driven by: bash/);
  const titles = await page.locator("#table thead th").allTextContents();
  assert.deepEqual(titles, ["allocator", "Driver time", "CPU time", "Peak RSS", "Steady RSS", "Page faults", "speed", "figure of a very long name"]);
  const cells = page.locator("#table tbody tr", { hasText: "plain" }).locator("td");
  const shades = await Promise.all([5, 6].map(i => cells.nth(i).locator("small").getAttribute("class")));
  assert.deepEqual(shades, ["better", "worse"]);
  assert.match(await cells.nth(5).getAttribute("class"), /best/);
  assert.equal(await cells.nth(6).getAttribute("class"), null);
  assert.equal(await page.locator("#plots section").count(), 7);
  assert.equal(await page.locator("#plots h2", { hasText: "speed" }).locator("small").textContent(), "further right is better; on the right, the ratio to glibc");
  await page.close();
});
