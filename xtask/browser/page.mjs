// The page in a real browser: `just browser` builds windlass, starts it and runs this with the program as its argument.
//
// What the page shows is held against what the API server says; a hostile object must stay text; five thousand objects must
// scroll. Numbers are printed, not asserted: the machine may be busy. Screenshots are written to the folder of the second
// argument. With a kubeconfig as the third, the page is that of `windlass ui` for its cluster, in a namespace of this test;
// QUICK=1 ends after the tree, for CI.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [program, shots = "screenshots", given] = process.argv.slice(2);
const chromiumPath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const folder = mkdtempSync(join(tmpdir(), "windlass-browser-"));
mkdirSync(shots, { recursive: true });

const claim = (holds, what) => {
  if (!holds) throw new Error(`not so: ${what}`);
  console.log(`ok    ${what}`);
};
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

const kubeconfig = given ?? join(folder, "kubeconfig");
const windlass = spawn(program, [...(given ? ["ui", "--edit"] : ["dev"]), "--kubeconfig", kubeconfig], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
let printed = "";
windlass.stdout.on("data", (data) => { printed += data; });

const until = async (what, test, patience = 60_000) => {
  const begin = Date.now();
  for (;;) {
    const value = await test();
    if (value) return value;
    if (Date.now() - begin > patience) throw new Error(`not seen: ${what}`);
    await sleep(10);
  }
};

// The administrator's way to the API server, by the same kubeconfig as kubectl.
let cluster;
const connect = () => {
  const text = readFileSync(kubeconfig, "utf8");
  const data = (name) => Buffer.from(new RegExp(`${name}: "?([A-Za-z0-9+/=]+)`).exec(text)[1], "base64");
  const server = /server: "?(https:[^"\s]+)/.exec(text)[1];
  const agent = new https.Agent({ keepAlive: true, ca: data("certificate-authority-data"), cert: data("client-certificate-data"), key: data("client-key-data") });
  cluster = (method, path, body) => new Promise((done, fail) => {
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const request = https.request(server + path, { method, agent, headers: { "content-type": type } }, (answer) => {
      let text = "";
      answer.on("data", (part) => { text += part; });
      answer.on("end", () => done(JSON.parse(text || "{}")));
    });
    request.on("error", fail);
    request.end(body && JSON.stringify(body));
  });
};

const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
let browser;
const memory = () => {
  try { return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${windlass.pid}/status`, "utf8"))[1]) / 1024; } catch { return NaN; }
};

// What a cluster of somebody else's is given to show.
const workloads = async (namespace) => {
  await cluster("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
  ending.push(() => cluster("DELETE", `/api/v1/namespaces/${namespace}`));
  for (const name of ["shop", "stock"]) {
    const labels = { app: name };
    await cluster("POST", `/apis/apps/v1/namespaces/${namespace}/deployments`, { metadata: { name }, spec: { replicas: 0, selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "web", image: "registry.invalid/web:1" }] } } } });
  }
};
const ending = [];

const run = async () => {
  const url = await until("the page's link", () => /page\s+(http:\S+)/.exec(printed)?.[1]);
  if (!given) await until("the samples", () => printed.includes("samples"));
  connect();
  const namespace = given ? `windlass-browser-${process.pid}` : "default";
  if (given) await workloads(namespace);
  browser = await chromium.launch({ executablePath: chromiumPath, headless: true, args: flags });

  const stranger = await browser.newContext();
  const refused = await (await stranger.newPage()).goto(url.replace(/\?.*/, ""));
  claim(refused.status() === 401, "without the token there is no page");
  await stranger.close();

  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light" });
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) problems.push(message.text()); });
  page.on("pageerror", (error) => problems.push(String(error)));
  const elsewhere = [];
  page.on("request", (request) => { if (!request.url().startsWith(url.replace(/\/\?.*/, ""))) elsewhere.push(request.url()); });
  await page.goto(url);
  claim(!page.url().includes("token"), "the token is not left in the address");
  await page.waitForSelector(".row");
  const text = () => page.evaluate(() => document.getElementById("rows").textContent);
  const row = (name) => page.locator(".row", { has: page.locator(".name", { hasText: new RegExp(`^${name}$`) }) }).first();

  // What kubectl would say.
  const list = await cluster("GET", `/apis/apps/v1/namespaces/${namespace}/deployments`);
  await until("every Deployment", async () => {
    await page.selectOption("#kind", "deployments.apps").catch(() => {});
    const shown = await text();
    return list.items.every((item) => shown.includes(item.metadata.name));
  });
  claim(list.items.length > 0, `all ${list.items.length} Deployments are shown`);
  // The tree is that of the terminal.
  const lines = execFileSync(program, ["top", "--kubeconfig", kubeconfig, "--kind", "deployments.apps", "-n", namespace], { encoding: "utf8", env: { ...process.env, LC_ALL: "C" } });
  const told = lines.trim().split("\n").map((line) => line.trim().split(/\s+/).filter((word) => !/^[v>+~!?-]$/.test(word)).slice(0, 2).join(" "));
  await page.selectOption("#namespace", namespace);
  const drawn = await page.evaluate(() => [...document.querySelectorAll(".row")].filter((row) => row.offsetParent)
    .map((row) => [Number(/-?[\d.]+/.exec(row.style.transform)), row]).sort((a, b) => a[0] - b[0])
    .map(([, row]) => `${row.querySelector(".kind").textContent} ${row.querySelector(".name").textContent}`));
  claim(drawn.join("\n") === told.join("\n"), `the page and windlass top show the same ${told.length} rows in the same order`);
  await page.selectOption("#namespace", "");
  await page.selectOption("#kind", "");
  if (!given) await until("everything well", async () => (await page.locator(".row .mark.InProgress").count()) === 0, 120_000);
  await page.screenshot({ path: join(shots, "objects-light.png") });

  // How long a change takes to be seen.
  const took = [];
  await page.evaluate(() => document.getElementById("everything").click());
  for (let at = 0; at < 5; at++) {
    const name = `seen-${at}`;
    await page.fill("#text", name);
    const begin = Date.now();
    await cluster("POST", `/api/v1/namespaces/${namespace}/configmaps`, { metadata: { name } });
    await page.waitForFunction((name) => document.getElementById("rows").textContent.includes(name), name, { polling: 5 });
    took.push(Date.now() - begin);
  }
  console.log(`      a new object is seen after ${took.join(", ")} ms, with the request that made it`);

  if (process.env.QUICK) return;

  // Hostile objects are text.
  const hostile = "<img src=x onerror=alert(1)>";
  await cluster("POST", `/api/v1/namespaces/${namespace}/configmaps`, { metadata: { name: "h".repeat(253), annotations: { note: hostile } }, data: { page: hostile } });
  await page.fill("#text", "hhhh");
  await page.locator(".row").first().click();
  await page.locator("#detail button[data-part=yaml]").click();
  await page.waitForSelector("#detail pre.yaml");
  claim(await page.locator("#detail img").count() === 0, "HTML in an object stays text");

  // One object, with its lines, its history, an edit.
  await page.fill("#text", "");
  await page.evaluate(() => document.getElementById("everything").click());
  const web = list.items.find((item) => /web/.test(item.metadata.name)) ?? list.items[0];
  await page.fill("#text", `deployment ${namespace}/${web.metadata.name}`);
  await page.locator(".row", { has: page.locator(".kind", { hasText: /^Deployment$/ }) }).first().click();
  await page.waitForSelector(`#detail h2:text-is("${web.metadata.name}")`);
  await page.fill("#text", "");
  await page.locator("#detail button[data-part=yaml]").click();
  await page.waitForSelector("#detail pre.yaml .who");
  await page.screenshot({ path: join(shots, "yaml-light.png") });
  await page.emulateMedia({ colorScheme: "dark" });
  await page.screenshot({ path: join(shots, "yaml-dark.png") });
  await page.emulateMedia({ colorScheme: "light" });
  await page.locator("#detail button[data-part=edit]").click();
  const editor = page.locator("#detail .editor");
  await editor.fill((await editor.inputValue()).replace("spec:\n", "spec:\n  nonsense: true\n"));
  await page.waitForSelector("#detail .outcome.bad");
  claim((await page.textContent("#detail .outcome")).includes("unknown field"), "the server refuses what it does not know, as one types");
  await page.screenshot({ path: join(shots, "edit-light.png") });

  if (given) {
    // The history of any cluster, and what happened before this page was open.
    await page.locator("#detail button[data-part=history]").click();
    await page.waitForSelector("#detail .versions .diff");
    await page.locator("#nav-changes").click();
    await page.waitForSelector("#feed li");
    claim(true, "the past of a cluster is shown");
    claim(elsewhere.length === 0, "nothing is fetched from elsewhere");
    return;
  }

  // A Pod fails by hand and the tree shows it.
  await page.locator("#detail .close").click();
  const pods = await cluster("GET", "/api/v1/namespaces/default/pods");
  const pod = pods.items[0].metadata.name;
  await page.fill("#text", pod);
  await row(pod).click();
  await page.locator("#detail button[data-part=overview]").click();
  await page.locator("#detail [data-fault=crash-loop]").click();
  await until("the failed Pod", async () => (await page.locator(".row .mark.Failed, .row .mark.InProgress").count()) > 0);
  await page.fill("#text", "");
  await sleep(300);
  await page.screenshot({ path: join(shots, "fault-light.png") });
  claim(true, "a Pod that fails by hand is seen to fail");
  await page.locator("#detail [data-fault='']").click();
  await page.locator("#detail button[data-part=history]").click();
  await page.waitForSelector("#detail .versions .diff");
  await page.screenshot({ path: join(shots, "history-light.png") });
  await page.locator("#detail .close").click();

  // Reconciles.
  const first = list.items[0];
  for (const replicas of [4, 2, 3]) {
    const owner = first.metadata.ownerReferences[0];
    const [group, version] = owner.apiVersion.split("/");
    const plural = `${owner.kind.toLowerCase()}s`;
    await cluster("PATCH", `/apis/${group}/${version}/namespaces/default/${plural}/${owner.name}`, { spec: { replicas, size: replicas } });
    await sleep(700);
  }
  await page.goto(`${url.replace(/\?.*/, "")}#reconciles`);
  await page.waitForSelector(".bar", { timeout: 20_000 });
  // The last run that wrote something.
  await page.locator(".bar").last().waitFor();
  const wrote = page.locator(".bar:not([title*=\" 0/\"])");
  await wrote.nth(Math.max(0, await wrote.count() - 1)).click();
  await page.waitForSelector("#detail .requests, #detail .hint");
  await page.screenshot({ path: join(shots, "reconciles-light.png") });
  claim(true, "runs are shown");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.screenshot({ path: join(shots, "reconciles-dark.png") });
  await page.locator("#nav-changes").click();
  await page.waitForSelector("#feed li");
  // The cluster began before the page was opened, and so do the changes.
  await until("what was before", () => page.evaluate(() => document.querySelectorAll("#feed li").length > 100));
  claim(true, "what happened before the page was opened is shown");
  await page.screenshot({ path: join(shots, "changes-dark.png") });
  await page.evaluate(() => { const slider = document.getElementById("moment"); slider.value = 1; slider.dispatchEvent(new Event("input")); slider.dispatchEvent(new Event("change")); });
  await page.waitForSelector("#past:not([hidden])");
  claim(true, "the cluster is shown as it was");
  await page.locator("#past-back").click();
  if (!await page.locator("#detail").isHidden()) await page.locator("#detail .close").click();
  await page.screenshot({ path: join(shots, "objects-dark.png") });

  // A phone, in Chinese, by keyboard.
  const phone = await browser.newContext({ viewport: { width: 390, height: 780 }, locale: "zh-CN", deviceScaleFactor: 2, colorScheme: "light" });
  const small = await phone.newPage();
  await small.goto(url);
  await small.waitForSelector(".row");
  await small.screenshot({ path: join(shots, "phone-zh.png") });
  claim(await small.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is wider than a phone");
  await small.focus("#tree");
  for (const key of ["ArrowDown", "ArrowDown", "ArrowLeft", "Enter"]) await small.keyboard.press(key);
  await small.waitForSelector("#detail .title");
  await small.screenshot({ path: join(shots, "phone-detail-zh.png") });
  await phone.close();

  // Five thousand objects. Memory is taken with the page closed, then with it open.
  await page.goto("about:blank");
  const make = async (from, to) => { for (let at = from; at < to; at++) await cluster("POST", "/api/v1/namespaces/default/configmaps", { metadata: { name: `many-${at}` }, data: { text: "x".repeat(200) } }); };
  const count = Number(process.env.OBJECTS ?? 5000), lanes = 16;
  await Promise.all([...Array(lanes).keys()].map((lane) => make(Math.floor(lane * count / lanes), Math.floor((lane + 1) * count / lanes))));
  await sleep(8000);
  const closed = memory();
  await page.goto(url);
  const begin = Date.now();
  await page.evaluate(() => document.getElementById("everything").click());
  await page.waitForFunction((count) => document.getElementById("rows").clientHeight > count * 30, count, { timeout: 60_000 });
  console.log(`      ${count} more objects are there after ${Date.now() - begin} ms`);
  await sleep(3000);
  console.log(`      memory ${closed.toFixed(0)} MB without the page, ${memory().toFixed(0)} MB with it: ${(memory() / closed).toFixed(2)} times`);
  const frames = await page.evaluate(() => new Promise((done) => {
    const tree = document.getElementById("tree"), gaps = [];
    let last = performance.now(), at = 0;
    const step = () => {
      const now = performance.now();
      gaps.push(now - last);
      last = now;
      tree.scrollTop = (at += 900);
      if (at < tree.scrollHeight && gaps.length < 400) requestAnimationFrame(step);
      else done({ frames: gaps.length, longest: Math.max(...gaps), elements: tree.querySelectorAll(".row").length });
    };
    requestAnimationFrame(step);
  }));
  console.log(`      scrolling: ${frames.frames} frames, the longest ${frames.longest.toFixed(0)} ms, ${frames.elements} rows drawn`);
  claim(frames.elements < 200, "only the rows that are seen are drawn");
  claim(elsewhere.length === 0, "nothing is fetched from elsewhere");
  const own = problems.filter((text) => !text.includes("401"));
  claim(own.length === 0, `the browser has nothing to complain about ${own.join("; ")}`);
};

let failed = null;
try { await run(); } catch (error) { failed = error; }
for (const end of ending) await end().catch(() => {});
await browser?.close();
windlass.kill("SIGINT");
await new Promise((done) => { windlass.once("exit", done); setTimeout(() => { windlass.kill("SIGKILL"); done(); }, 10_000).unref(); });
rmSync(folder, { recursive: true, force: true });
if (failed) { console.error(failed); process.exit(1); }
