// The page in a real browser. Usage: node page.mjs SCENARIO URL [OPTIONS as JSON]; prints one JSON object.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import path from "node:path";

const require = createRequire(path.join(process.env.PAGE_MODULES, "package.json"));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [scenario, url, given] = process.argv.slice(2);
const options = given ? JSON.parse(given) : {};
const PAGES = ["", "/overview", "/requests", "/playground", "/providers", "/models", "/keys", "/settings"];

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const trouble = [];

const open = async (more = {}) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...more });
  const page = await context.newPage();
  page.on("console", (said) => { if (said.type() === "error") trouble.push(`console: ${said.text()}`); });
  page.on("pageerror", (error) => trouble.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => { trouble.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith("data:")) trouble.push(`elsewhere: ${request.url()}`);
  });
  return page;
};

// The content policy keeps scripts of others out, this one too: it is put in from outside the page.
const faults = async (page) => {
  const session = await page.context().newCDPSession(page);
  await session.send("Page.setBypassCSP", { enabled: true });
  await page.reload({ waitUntil: "domcontentloaded" });
  await page.evaluate(AXE);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(" | ")}`);
};

const scenarios = {
  async looks() {
    const found = {};
    for (const colorScheme of ["light", "dark"]) {
      for (const width of [380, 1280, 1920]) {
        const page = await open({ colorScheme, viewport: { width, height: 900 } });
        for (const name of [...PAGES, ...(options.more ?? [])]) {
          await page.goto(`${url}/ui${name}`, { waitUntil: "load" });
          const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
          const key = `${name || "/"} ${width} ${colorScheme}`;
          if (wide > 0) found[key] = [`${wide} pixels wider than the window`];
          if (options.shots) await page.screenshot({ path: `${options.shots}/${name.replaceAll(/[/?=&]/g, "_") || "home"}-${width}-${colorScheme}.png`, fullPage: true });
          if (width === 1280) {
            const bad = await faults(page);
            if (bad.length) found[key] = [...(found[key] ?? []), ...bad];
          }
        }
        await page.context().close();
      }
    }
    return { found };
  },
  async pictures() {
    // For people who have not seen it yet.
    const taken = [];
    for (const [name, at, height] of options.pictures) {
      const page = await open({ viewport: { width: 1280, height }, colorScheme: "light", deviceScaleFactor: 1 });
      await page.goto(`${url}/ui${at}`, { waitUntil: "load" });
      if (name === "playground") {
        await page.fill("#play-body", JSON.stringify({ input: "What is an isthmus?", temperature: 0.2, top_logprobs: 2 }, null, 2));
        await page.fill('input[name="second"]', options.second);
        await page.click("#play-send");
        await page.waitForFunction(() => document.querySelectorAll("#play-sides .side-state.completed").length === 2);
      }
      await page.screenshot({ path: `${options.folder}/page-${name}.png` });
      taken.push(name);
      await page.context().close();
    }
    return { taken };
  },
  async tries() {
    const page = await open();
    await page.goto(`${url}/ui`);
    await page.fill("#try-input", "Say hello");
    await page.click("#try-form button");
    await page.waitForFunction(() => document.getElementById("try-answer").textContent.length > 3 && !document.querySelector("#try-form button").disabled);
    return { answer: await page.textContent("#try-answer") };
  },
  async live() {
    const page = await open();
    await page.goto(`${url}/ui/requests`);
    await page.getByText("live", { exact: true }).waitFor();
    const before = await page.locator("tbody tr").count();
    const answer = await fetch(`${url}/v1/responses`, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ input: "while you watch" }),
    });
    const id = answer.headers.get("x-request-id");
    await page.locator(`a[href$="${id}"]`).waitFor();
    const rows = (await page.locator("tbody tr").count()) - before;
    await page.click(`a[href$="${id}"]`);
    return { rows, title: await page.title(), id };
  },
  async filters() {
    const page = await open();
    await page.goto(`${url}/ui/requests`);
    await page.selectOption('select[name="outcome"]', "refused");
    await page.click("form.filters button");
    const outcomes = await page.locator("tbody tr td:nth-child(2)").allTextContents();
    const address = page.url();
    await page.getByText("Clear").click();
    return { outcomes, address, all: await page.locator("tbody tr").count() };
  },
  async plays() {
    const page = await open();
    await page.goto(`${url}/ui/playground`);
    await page.fill("#play-body", "{");
    await page.click("#play-plan");
    const problem = await page.textContent("#play-problem");
    await page.fill("#play-body", JSON.stringify({ input: "hello <b>there</b>", top_logprobs: 2 }));
    await page.fill('input[name="second"]', options.second);
    await page.click("#play-plan");
    await page.waitForFunction(() => document.querySelectorAll("#play-sides section").length === 2);
    await page.locator("#play-sides .tag.ignored").first().waitFor();
    const planned = await page.locator("#play-sides .side-answer").allTextContents();
    await page.click("#play-send");
    await page.waitForFunction(() => document.querySelectorAll("#play-sides .side-state.completed").length === 2);
    return {
      problem, planned,
      names: await page.locator("#play-sides .side-name").allTextContents(),
      answers: await page.locator("#play-sides .side-answer").allTextContents(),
      events: await page.locator("#play-sides .side-events li").allTextContents(),
    };
  },
  async enters() {
    const page = await open();
    await page.goto(`${url}/ui/requests?door=chat`);
    const asked = page.url();
    await page.fill("#key", "wrong");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
    const refused = await page.getByRole("alert").textContent();
    trouble.length = 0; // the browser tells of the 401 itself
    await page.fill("#key", options.key);
    await page.click("main button");
    await page.waitForURL("**/ui/requests?door=chat");
    const cookies = await page.context().cookies();
    const script = await page.evaluate(() => document.cookie);
    const forged = await page.evaluate(async () => (await fetch("/ui/capture", { method: "POST", body: new URLSearchParams({ token: "0", minutes: "5" }) })).status);
    trouble.length = 0;
    await page.getByText("Log out").click();
    await page.waitForURL("**/ui/login");
    await page.goto(`${url}/ui/settings`);
    return { asked, refused, cookie: cookies[0], script, forged, after: page.url() };
  },
  async bears() {
    // Every page about hostile requests: nothing of them runs, and all of it can be read.
    const page = await open();
    const seen = {};
    for (const name of options.paths) {
      await page.goto(`${url}/ui${name}`, { waitUntil: "load" });
      seen[name] = {
        hacked: await page.evaluate(() => globalThis.hacked ?? null),
        images: await page.locator('img:not([src^="/ui/static/"])').count(),
        read: (await page.textContent("body")).includes("onerror"),
        faults: await faults(page),
      };
    }
    return { seen };
  },
  async plain() {
    const page = await open({ javaScriptEnabled: false });
    const seen = {};
    for (const name of [...PAGES, ...(options.more ?? [])]) {
      await page.goto(`${url}/ui${name}`);
      seen[name] = (await page.textContent("main")).trim().length;
    }
    await page.goto(`${url}/ui`);
    await page.fill("#try-input", "Say hello");
    await page.click("#try-form button");
    return { seen, went: page.url(), plots: await page.locator("svg.plot").count() };
  },
  async keys() {
    const page = await open();
    await page.goto(`${url}/ui`);
    const stops = [];
    for (let step = 0; step < 12; step += 1) {
      await page.keyboard.press("Tab");
      stops.push(await page.evaluate(() => {
        const at = document.activeElement;
        const ring = getComputedStyle(at).outlineStyle !== "none";
        return { text: (at.textContent || at.name || at.id).trim().slice(0, 20), ring };
      }));
    }
    await page.goto(`${url}/ui`);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    return { stops, hash: new URL(page.url()).hash };
  },
};

try {
  console.log(JSON.stringify({ ...(await scenarios[scenario]()), trouble }));
} finally {
  await browser.close();
}
