// The page's script: what the server says enters, rows and panels leave. Values of the cluster are only ever set as text.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const words = JSON.parse(document.body.dataset.words);
  const HEIGHT = 34;
  // The token has done its work; it should not stay in the address.
  history.replaceState(null, "", location.pathname + location.hash);

  const make = (tag, name, text) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  // ---- What is known ----

  let kinds = [];
  let live = new Map();
  let past = null;
  let whole = false;
  let changes = [];
  const rows = () => past ?? live;
  const kindOf = (row) => kinds[row.k] ?? { kind: "?", plural: "?", group: "", version: "v1", custom: false };

  // ---- The tree ----

  const tree = $("tree"), space = $("rows");
  const folded = new Set(), flashes = new Map(), shown = new Map();
  let visible = [], selected = null, dirty = true, scheduled = false;
  const filters = { text: "", kind: "", namespace: "", health: new Set(), everything: false };

  const changed = () => {
    dirty = true;
    if (!scheduled) {
      scheduled = true;
      requestAnimationFrame(() => { scheduled = false; draw(); });
    }
  };

  // As `windlass top` has it.
  const by = (a, b) => a < b ? -1 : a > b ? 1 : 0;
  const order = (a, b) => {
    const x = kindOf(a), y = kindOf(b);
    return (y.custom - x.custom) || by(x.kind.toLowerCase(), y.kind.toLowerCase()) || by(a.s ?? "", b.s ?? "") || by(a.n, b.n);
  };

  const matches = (row) => {
    const kind = kindOf(row);
    if (filters.kind && `${kind.plural}.${kind.group}` !== filters.kind) return false;
    if (filters.namespace && row.s !== filters.namespace) return false;
    if (filters.health.size && !filters.health.has(row.h)) return false;
    return !filters.text || `${kind.kind} ${row.s ?? ""}/${row.n}`.toLowerCase().includes(filters.text);
  };

  // The rows in the order of the tree: children below their owners, and what leads to a match with it.
  const flatten = () => {
    const all = rows(), children = new Map(), roots = [];
    const filtered = filters.text || filters.kind || filters.namespace || filters.health.size;
    const keep = filtered ? new Map() : null;
    for (const row of all.values()) {
      if (row.o && row.o !== row.u && all.has(row.o)) {
        const list = children.get(row.o);
        if (list) list.push(row); else children.set(row.o, [row]);
      } else roots.push(row);
      if (keep && matches(row)) {
        keep.set(row.u, true);
        for (let up = all.get(row.o), steps = 0; up && steps < 50; up = all.get(up.o), steps++) {
          if (!keep.has(up.u)) keep.set(up.u, false);
        }
      }
    }
    const list = [];
    const seen = new Set();
    const walk = (row, depth) => {
      if (seen.has(row.u) || (keep && !keep.has(row.u))) return;
      seen.add(row.u);
      const below = children.get(row.u);
      const open = below && !folded.has(row.u);
      list.push({ row, depth, parent: !!below, open, dim: keep && !keep.get(row.u) });
      if (open) for (const child of below.sort(order)) walk(child, depth + 1);
    };
    const wanted = (row) => filters.everything || filters.kind || kindOf(row).workload;
    for (const row of roots.sort(order)) if (wanted(row)) walk(row, 0);
    return list;
  };

  const age = (seconds) => {
    const s = Math.max(0, Math.floor(Date.now() / 1000 - seconds));
    if (s < 120) return `${s}s`;
    if (s < 7200) return `${Math.floor(s / 60)}m`;
    if (s < 172800) return `${Math.floor(s / 3600)}h`;
    return `${Math.floor(s / 86400)}d`;
  };

  const fill = (element, item) => {
    const { row, depth, parent, open, dim } = item, kind = kindOf(row);
    const [twist, mark, kindName, name, namespace, message, time] = element.children;
    twist.textContent = parent ? (open ? "▾" : "▸") : "";
    mark.className = `mark ${row.h}`;
    mark.title = words[{ Current: "current", InProgress: "in_progress", Failed: "failed", Terminating: "terminating" }[row.h] ?? "unknown"];
    kindName.textContent = kind.kind;
    kindName.classList.toggle("custom", !!kind.custom);
    name.textContent = row.n;
    namespace.textContent = row.s ?? "";
    message.textContent = row.m ?? "";
    message.title = row.m ?? "";
    time.textContent = row.t ? age(row.t) : "";
    element.style.paddingLeft = `${10 + Math.min(depth, 12) * 20}px`;
    element.classList.toggle("dim", !!dim);
    element.classList.toggle("selected", selected === row.u);
    element.setAttribute("aria-level", depth + 1);
    element.setAttribute("aria-selected", selected === row.u);
    element.setAttribute("aria-label", `${kind.kind} ${row.n} ${row.s ?? ""} ${mark.title} ${row.m ?? ""}`);
    if (parent) element.setAttribute("aria-expanded", !!open); else element.removeAttribute("aria-expanded");
    element.dataset.uid = row.u;
  };

  const rowElement = () => {
    const element = make("div", "row");
    element.setAttribute("role", "treeitem");
    for (const name of ["twist", "mark", "kind", "name", "namespace", "message", "age"]) element.append(make("span", name));
    return element;
  };

  const draw = () => {
    if (dirty) {
      visible = flatten();
      dirty = false;
      space.style.height = `${visible.length * HEIGHT}px`;
      choices();
      const none = visible.length === 0 && whole;
      $("empty").hidden = !none;
      $("empty").textContent = rows().size && (filters.text || filters.kind || filters.namespace || filters.health.size)
        ? words.nothing : `${words.empty} ${words.try_this}`;
    }
    const first = Math.max(0, Math.floor(tree.scrollTop / HEIGHT) - 8);
    const last = Math.min(visible.length, Math.ceil((tree.scrollTop + tree.clientHeight) / HEIGHT) + 8);
    const used = new Set();
    for (let at = first; at < last; at++) used.add(visible[at].row.u);
    const spare = [];
    for (const [uid, element] of shown) if (!used.has(uid)) { shown.delete(uid); spare.push(element); }
    const now = performance.now();
    for (let at = first; at < last; at++) {
      const item = visible[at], uid = item.row.u;
      let element = shown.get(uid);
      if (!element) {
        element = spare.pop() ?? space.appendChild(rowElement());
        element.classList.remove("flash");
        shown.set(uid, element);
      }
      fill(element, item);
      element.style.transform = `translateY(${at * HEIGHT}px)`;
      const flash = flashes.get(uid);
      if (flash !== undefined) {
        flashes.delete(uid);
        if (now - flash < 2000) {
          element.classList.remove("flash");
          void element.offsetWidth;
          element.classList.add("flash");
        }
      }
    }
    for (const element of spare) element.remove();
  };

  // What can be chosen is what there is.
  const choices = () => {
    const counts = new Map(), namespaces = new Set(), health = {};
    for (const row of rows().values()) {
      const kind = kindOf(row);
      if (!filters.everything && !kind.workload && !row.o) { if (row.s) namespaces.add(row.s); continue; }
      counts.set(row.k, (counts.get(row.k) ?? 0) + 1);
      health[row.h] = (health[row.h] ?? 0) + 1;
      if (row.s) namespaces.add(row.s);
    }
    const fillSelect = (select, entries) => {
      const text = JSON.stringify(entries);
      if (select.dataset.known === text) return;
      select.dataset.known = text;
      const value = select.value;
      while (select.options.length > 1) select.remove(1);
      for (const [key, label] of entries) select.append(new Option(label, key));
      select.value = value;
    };
    const listed = [...counts.keys()].map((k) => kinds[k]).filter(Boolean)
      .sort((a, b) => (b.custom - a.custom) || a.kind.localeCompare(b.kind))
      .map((kind) => [`${kind.plural}.${kind.group}`, kind.kind]);
    fillSelect($("kind"), listed);
    fillSelect($("namespace"), [...namespaces].sort().map((name) => [name, name]));
    for (const chip of document.querySelectorAll(".chip")) {
      const count = health[chip.dataset.health] ?? 0;
      chip.querySelector(".count").textContent = count || "";
      chip.classList.toggle("none", !count);
    }
  };

  tree.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  new ResizeObserver(() => draw()).observe(tree);
  setInterval(() => { if (!document.hidden) { draw(); ages(document); } }, 5000);

  tree.addEventListener("click", (event) => {
    const element = event.target.closest(".row");
    if (!element) return;
    const uid = element.dataset.uid;
    if (event.target.classList.contains("twist") && event.target.textContent) fold(uid);
    else { selected = uid; open(rows().get(uid)); changed(); }
  });

  const fold = (uid, shut = !folded.has(uid)) => {
    if (shut) folded.add(uid); else folded.delete(uid);
    changed();
  };

  const reveal = (at) => {
    const top = at * HEIGHT;
    if (top < tree.scrollTop) tree.scrollTop = top;
    else if (top + HEIGHT > tree.scrollTop + tree.clientHeight) tree.scrollTop = top + HEIGHT - tree.clientHeight;
  };

  tree.addEventListener("keydown", (event) => {
    const at = visible.findIndex((item) => item.row.u === selected);
    const item = visible[at];
    const go = (to) => {
      const next = visible[Math.max(0, Math.min(visible.length - 1, to))];
      if (next) { selected = next.row.u; reveal(visible.indexOf(next)); changed(); }
    };
    const page = Math.max(1, Math.floor(tree.clientHeight / HEIGHT) - 1);
    switch (event.key) {
      case "ArrowDown": case "j": go(at + 1); break;
      case "ArrowUp": case "k": go(at < 0 ? 0 : at - 1); break;
      case "PageDown": go(at + page); break;
      case "PageUp": go(at - page); break;
      case "Home": go(0); break;
      case "End": go(visible.length - 1); break;
      case "ArrowLeft":
        if (item?.parent && item.open) fold(selected, true);
        else if (item) for (let up = at - 1; up >= 0; up--) if (visible[up].depth < item.depth) { go(up); break; }
        break;
      case "ArrowRight": if (item?.parent && !item.open) fold(selected, false); else go(at + 1); break;
      case "Enter": case " ": if (item) open(item.row); break;
      default: return;
    }
    event.preventDefault();
  });

  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.key === "/" && !typing) { location.hash = "#objects"; $("text").focus(); event.preventDefault(); }
    if (event.key === "Escape") {
      if (event.target.id === "text") { $("text").value = ""; filters.text = ""; changed(); tree.focus(); }
      else if (!$("detail").hidden && event.target.tagName !== "TEXTAREA") { close(); tree.focus(); }
    }
  });

  $("text").addEventListener("input", (event) => { filters.text = event.target.value.trim().toLowerCase(); tree.scrollTop = 0; changed(); });
  $("kind").addEventListener("change", (event) => { filters.kind = event.target.value; tree.scrollTop = 0; changed(); });
  $("namespace").addEventListener("change", (event) => { filters.namespace = event.target.value; tree.scrollTop = 0; changed(); });
  $("everything").addEventListener("change", (event) => { filters.everything = event.target.checked; changed(); });
  for (const chip of document.querySelectorAll(".chip")) {
    chip.addEventListener("click", () => {
      const health = chip.dataset.health, on = !filters.health.has(health);
      if (on) filters.health.add(health); else filters.health.delete(health);
      chip.setAttribute("aria-pressed", on);
      changed();
    });
  }

  // ---- The panel of an object or a run ----

  const detail = $("detail");
  let shownObject = null, part = "overview", extra = {}, generation = 0, refresh = 0;

  const query = (row, more = {}) => {
    const kind = kindOf(row);
    const params = { group: kind.group, version: kind.version, kind: kind.kind, plural: kind.plural, namespace: row.s ?? "", name: row.n, ...more };
    return new URLSearchParams(params).toString();
  };

  const ages = (root) => {
    for (const time of root.querySelectorAll("time.ago")) {
      const at = Date.parse(time.dateTime);
      if (!Number.isNaN(at)) { time.textContent = age(at / 1000); time.title = new Date(at).toLocaleString(); }
    }
  };

  const put = (html, keep) => {
    const top = keep ? detail.scrollTop : 0;
    const opened = keep ? [...detail.querySelectorAll("details[open]")].map((element) => element.closest("[data-path]")?.dataset.path) : [];
    const why = keep ? detail.querySelector(".why")?.value : "";
    detail.innerHTML = html;
    ages(detail);
    for (const element of detail.querySelectorAll("[data-path]")) {
      if (opened.includes(element.dataset.path)) element.querySelector("details").open = true;
    }
    if (why) { detail.querySelector(".why").value = why; filterFields(why); }
    detail.hidden = false;
    document.body.classList.add("detailed");
    detail.scrollTop = top;
  };

  const load = async (url, keep) => {
    const mine = ++generation;
    try {
      const answer = await fetch(url);
      const html = await answer.text();
      if (mine === generation && answer.ok) put(html, keep);
    } catch { /* the connection is shown to be lost */ }
  };

  const loadPart = (keep = false) => shownObject && load(`object?${query(shownObject, { part, ...extra })}`, keep);

  const open = (row, which = part === "edit" ? "overview" : part) => {
    if (!row) return;
    const wasShown = shownObject?.u === row.u;
    shownObject = row;
    part = which === "logs" && kindOf(row).kind !== "Pod" ? "overview" : which;
    if (!wasShown) extra = {};
    selected = row.u;
    loadPart();
    changed();
  };

  const close = () => {
    generation++;
    shownObject = null;
    detail.hidden = true;
    detail.textContent = "";
    document.body.classList.remove("detailed");
    draw();
  };

  const touched = (uid) => {
    if (shownObject?.u !== uid || part === "edit" || detail.querySelector("[data-sure]")) return;
    clearTimeout(refresh);
    refresh = setTimeout(() => loadPart(true), 120);
  };

  const openRun = (id) => { shownObject = null; load(`run?id=${encodeURIComponent(id)}`); };

  const post = async (path, row, more, body = "") => {
    try {
      const answer = await fetch(`${path}?${query(row, more)}`, { method: "POST", headers: { "x-windlass-page": "1" }, body });
      return answer.ok ? await answer.json() : { ok: false, message: await answer.text() };
    } catch { return { ok: false, message: words.lost }; }
  };

  const tell = (element, text, kind) => {
    if (!element) return;
    element.textContent = text;
    element.className = `outcome ${kind}`;
  };

  // What cannot be undone is asked for twice.
  const sure = (button) => {
    if (button.dataset.sure) return true;
    button.dataset.sure = "1";
    const text = button.textContent;
    button.textContent = words.sure;
    setTimeout(() => { delete button.dataset.sure; button.textContent = text; }, 3000);
    return false;
  };

  const find = (test) => { for (const row of rows().values()) if (test(row)) return row; };

  detail.addEventListener("click", async (event) => {
    const target = event.target.closest("button, a.link");
    if (!target) return;
    event.preventDefault();
    const data = target.dataset, row = shownObject;
    const status = target.parentElement.querySelector(".outcome");
    if (target.classList.contains("close")) return close();
    if (data.run) return openRun(data.run);
    if (data.uid && !data.action) return open(rows().get(data.uid), "overview");
    if (data.resource) {
      const found = find((row) => {
        const kind = kindOf(row);
        const resource = kind.group ? `${kind.plural}.${kind.group}` : kind.plural;
        return resource === data.resource && row.n === data.name && (row.s ?? "") === data.namespace;
      });
      return open(found, "runs");
    }
    if (!row) return;
    if (data.part) { part = data.part; extra = {}; return loadPart(); }
    if (data.container !== undefined) { extra = { container: data.container }; return loadPart(); }
    if (data.action === "reveal") { extra = { reveal: "1" }; return loadPart(true); }
    if (data.action === "restore") {
      if (!sure(target)) return;
      const outcome = await post("restore", row, { revision: data.revision });
      tell(status, outcome.ok ? words.done : outcome.message, outcome.ok ? "good" : "bad");
      if (outcome.ok) { extra = {}; loadPart(true); }
      return;
    }
    if (data.revision) { extra = { revision: data.revision }; return loadPart(true); }
    if (data.action === "fault") {
      const outcome = await post("fault", row, { fault: data.fault });
      tell(status, outcome.ok ? words.done : outcome.message, outcome.ok ? "good" : "bad");
    }
    if (data.action === "delete" && sure(target)) {
      const outcome = await post("delete", row, { uid: data.uid });
      tell(status, outcome.ok ? words.done : outcome.message, outcome.ok ? "good" : "bad");
    }
    if (data.action === "apply") {
      const editor = detail.querySelector(".editor");
      const outcome = await post("apply", row, {}, editor.value);
      tell(status, outcome.ok ? words.applied : outcome.message, outcome.ok ? "good" : "bad");
      if (outcome.ok) {
        editor.value = editor.value.replace(/^(  resourceVersion: ).*$/m, `$1"${outcome.revision}"`);
        target.disabled = true;
      }
    }
  });

  const filterFields = (text) => {
    for (const element of detail.querySelectorAll(".fields > li")) {
      element.hidden = !element.dataset.path.toLowerCase().includes(text.toLowerCase());
    }
  };

  // The server says as one types whether it would take it.
  let asking = 0;
  detail.addEventListener("input", (event) => {
    if (event.target.classList.contains("why")) return filterFields(event.target.value);
    if (!event.target.classList.contains("editor") || !shownObject) return;
    const row = shownObject, editor = event.target, mine = ++asking;
    const status = detail.querySelector(".outcome"), button = detail.querySelector("[data-action=apply]");
    button.disabled = true;
    tell(status, words.checking, "");
    setTimeout(async () => {
      if (mine !== asking) return;
      const outcome = await post("apply", row, { dry: "1" }, editor.value);
      if (mine !== asking) return;
      tell(status, outcome.ok ? words.valid : outcome.message, outcome.ok ? "good" : "bad");
      button.disabled = !outcome.ok;
    }, 300);
  });

  // ---- Reconciles ----

  let runs = [], queue = [];
  const micros = (us) => us < 1000 ? `${us} µs` : us < 1e6 ? `${(us / 1000).toFixed(1)} ms` : us < 12e7 ? `${(us / 1e6).toFixed(1)} s`
    : us < 72e8 ? `${Math.floor(us / 6e7)} min` : `${Math.floor(us / 36e8)} h`;
  const place = (run) => run.namespace ? `${run.namespace}/${run.name}` : run.name;

  const drawRuns = () => {
    if ($("reconciles").hidden) return;
    $("no-runs").hidden = runs.some((run) => !run.built_in || filters.everything);
    $("no-runs").textContent = document.body.dataset.operators === "true" || queue.length ? words.no_runs : words.no_operators;
    const strips = new Map();
    const own = runs.filter((run) => !run.built_in || filters.everything);
    for (const run of own) {
      const key = `${run.controller} ${place(run)}`;
      if (!strips.has(key)) strips.set(key, []);
      strips.get(key).push(run);
    }
    const latest = [...strips.values()].sort((a, b) => b.at(-1).id - a.at(-1).id).slice(0, 200);
    $("strips").replaceChildren(...latest.map((strip) => {
      const last = strip.at(-1), line = make("div", "strip");
      const label = make("div", "label");
      label.append(make("span", "kind custom", last.controller), make("b", "", last.name), make("span", "namespace", last.namespace));
      const bars = make("div", "bars");
      for (const run of strip.slice(-60)) {
        const bar = make("button", `bar ${run.outcome}`);
        bar.type = "button";
        bar.dataset.run = run.id;
        bar.style.height = `${Math.min(26, 5 + 5 * Math.log10(1 + run.ran / 100))}px`;
        bar.title = `${new Date(run.began).toLocaleTimeString()} · ${micros(run.ran)} · ${run.writes}/${run.requests} ${words.requests} · ${words[run.outcome] ?? run.outcome}`;
        bar.setAttribute("aria-label", bar.title);
        bars.append(bar);
      }
      line.append(label, bars, make("span", `outcome ${last.outcome}`, words[last.outcome] ?? last.outcome));
      return line;
    }));
    const slow = [...own].sort((a, b) => b.ran - a.ran).slice(0, 8), most = Math.max(1, slow[0]?.ran ?? 1);
    $("slowest").replaceChildren(...slow.map((run) => {
      const line = make("li"), button = make("button", "slow"), bar = make("span", "fill");
      button.type = "button";
      button.dataset.run = run.id;
      bar.style.width = `${100 * run.ran / most}%`;
      button.append(bar, make("span", "what", `${run.controller} ${run.name}`), make("span", "right", micros(run.ran)));
      line.append(button);
      return line;
    }));
    const waiting = queue.filter((item) => item.place !== "ready" || item.millis > 50 || item.failures).sort((a, b) => a.millis - b.millis).slice(0, 50);
    $("queue").replaceChildren(...(waiting.length ? waiting.map((item) => {
      const line = make("div", "queued");
      line.append(make("span", `badge ${item.failures ? "bad" : ""}`, words[item.place] ?? item.place), make("span", "what", `${item.controller} ${place(item)}`),
        make("span", "right", `${micros(item.millis * 1000)}${item.failures ? ` · ${item.failures} ${words.failures}` : ""}`));
      return line;
    }) : [make("p", "hint", words.queue_empty)]));
  };
  for (const id of ["strips", "slowest"]) {
    $(id).addEventListener("click", (event) => { const run = event.target.closest("[data-run]"); if (run) openRun(run.dataset.run); });
  }

  // ---- Changes and the past ----

  const moment = $("moment");
  // What happened before the page was opened is asked for when somebody wants to see it, once.
  let askedEarlier = false;
  const earlier = async () => {
    if (askedEarlier || $("changes").hidden) return;
    askedEarlier = true;
    try {
      const found = await (await fetch("earlier")).json();
      const first = Math.min(...changes.map((change) => Number(change.row.r)));
      changes = found.filter((change) => Number(change.row.r) < first).concat(changes).slice(-1000);
      drawFeed();
    } catch { askedEarlier = false; }
  };
  const drawFeed = () => {
    if ($("changes").hidden) return;
    const now = moment.value === moment.max;
    moment.max = changes.length;
    if (now) moment.value = moment.max;
    $("feed").replaceChildren(...changes.slice(-300).reverse().map((change) => {
      const line = make("li"), button = make("button", "change"), kind = kindOf(change.row);
      button.type = "button";
      button.dataset.id = change.id;
      button.append(make("time", "", new Date(change.time).toLocaleTimeString()), make("span", `what ${change.verb}`, words[change.verb === "created" ? "made" : change.verb] ?? change.verb),
        make("span", `kind ${kind.custom ? "custom" : ""}`, kind.kind), make("b", "", change.row.n), make("span", "namespace", change.row.s ?? ""));
      if (change.writer) button.append(make("span", "writer", `${words.by} ${change.writer}`));
      line.append(button);
      return line;
    }));
  };
  $("feed").addEventListener("click", (event) => {
    const id = event.target.closest("[data-id]")?.dataset.id;
    const change = changes.find((change) => String(change.id) === id);
    if (change) open(change.row, "history");
  });

  const showMoment = () => {
    const change = changes[Number(moment.value)];
    $("moment-time").textContent = change ? new Date(change.time).toLocaleTimeString() : words.now;
    return change;
  };
  moment.addEventListener("input", showMoment);
  moment.addEventListener("change", async () => {
    const change = showMoment();
    if (!change) return present();
    // As it was before this change.
    const revision = Math.max(1, Number(change.row.r) - 1);
    try {
      const answer = await (await fetch(`at?revision=${revision}`)).json();
      past = new Map(answer.rows.map((row) => [row.u, row]));
      $("past").hidden = false;
      $("past-revision").textContent = `${revision} · ${new Date(change.time).toLocaleTimeString()}`;
      const unknown = answer.unknown.map((index) => kinds[index]?.kind).filter(Boolean);
      $("past-unknown").textContent = unknown.length ? ` (${words.past_unknown}: ${unknown.join(", ")})` : "";
      location.hash = "#objects";
      changed();
    } catch { /* the connection is shown to be lost */ }
  });
  const present = () => {
    past = null;
    $("past").hidden = true;
    moment.value = moment.max;
    $("moment-time").textContent = words.now;
    changed();
  };
  $("past-back").addEventListener("click", present);

  // ---- Rooms, language ----

  const route = () => {
    const room = ["objects", "reconciles", "changes"].find((name) => location.hash === `#${name}`) ?? "objects";
    for (const name of ["objects", "reconciles", "changes"]) {
      $(name).hidden = name !== room;
      if (name === room) $(`nav-${name}`).setAttribute("aria-current", "page"); else $(`nav-${name}`).removeAttribute("aria-current");
    }
    drawRuns();
    drawFeed();
    if (whole) earlier();
    draw();
  };
  window.addEventListener("hashchange", route);
  $("language").addEventListener("click", () => {
    const other = document.documentElement.lang.startsWith("zh") ? "en" : "zh";
    document.cookie = `windlass-lang=${other}; path=/; max-age=31536000; samesite=strict`;
    location.reload();
  });

  // ---- What the server tells ----

  const events = new EventSource("events");
  const state = (text, kind) => { $("live").textContent = text; $("live").className = `live ${kind}`; };
  events.addEventListener("open", () => state(words.live, "on"));
  events.addEventListener("error", () => state(words.lost, "off"));
  events.addEventListener("update", (event) => {
    const update = JSON.parse(event.data);
    if (update.reset) { live = new Map(); changes = []; whole = false; askedEarlier = false; }
    if (update.kinds?.length) kinds = update.kinds;
    const now = performance.now();
    for (const row of update.put ?? []) {
      if (whole) { flashes.set(row.u, now); touched(row.u); }
      live.set(row.u, row);
    }
    for (const uid of update.del ?? []) { live.delete(uid); touched(uid); }
    if (update.whole !== undefined) whole = update.whole;
    if (whole) earlier();
    if (update.changes?.length) { changes = changes.concat(update.changes).slice(-1000); drawFeed(); }
    if (update.unreadable) {
      $("unreadable").textContent = update.unreadable.length ? ` · ${update.unreadable.length} ${words.unreadable}` : "";
      $("unreadable").title = update.unreadable.map(([kind, why]) => `${kinds[kind]?.kind}: ${why}`).join("\n");
    }
    changed();
  });
  events.addEventListener("runs", (event) => {
    const update = JSON.parse(event.data);
    runs = runs.concat(update.runs).slice(-2000);
    queue = update.queue;
    drawRuns();
    if (shownObject && part === "runs" && update.runs.length) { clearTimeout(refresh); refresh = setTimeout(() => loadPart(true), 200); }
  });
  route();
})();
