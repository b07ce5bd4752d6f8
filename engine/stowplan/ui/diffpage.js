
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SIDES = ["old", "new"];
  const MOST_ROWS = 500;
  const WORDS = {
    newlyPending: "newly pending", moved: "placed elsewhere", newlyPlaced: "newly placed",
    otherReason: "pending for another reason", same: "as before",
  };
  const byId = (id) => document.getElementById(id);

  /** An element with attributes and children; texts become text nodes, never markup. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  const shown = (value) => (value === null || value === undefined ? "" : String(value));
  const signed = (value) => (value === null ? "none" : value > 0 ? `+${value}` : String(value));
  const rounded = (number) => Math.round(number * 1e6) / 1e6;

  /** Empty cells come last in either direction; numbers by size, texts as people read numbers in names. */
  function compare(a, b, direction) {
    const empty = (value) => value === null || value === undefined || value === "";
    if (empty(a) || empty(b)) return empty(a) - empty(b);
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
    return direction * order;
  }

  /**
   * A table that sorts by every column and is filtered by text.
   * columns: {label, group, value(row), text(row), className(row), number, first}; the first column heads its row.
   */
  function grid({ columns, rows, sort, name, head, mark, label }) {
    let order = sort ?? { column: 0, direction: 1 };
    let words = "";
    let all = false;
    const text = (column, row) => (column.text ? column.text(row) : shown(column.value(row)));
    const body = make("tbody");
    const count = make("span", { class: "count", role: "status" });
    const more = make("button", { hidden: true, onclick: () => { all = true; draw(); } }, "show all");
    const search = make("input", { type: "search", "aria-label": `Filter ${label}`, placeholder: `filter ${label}`,
      oninput: () => { words = search.value.trim().toLowerCase(); draw(); } });
    const heads = columns.map((column, place) => make("th", { scope: "col", title: column.title },
      make("button", { onclick: () => sortBy(place) }, column.label)));

    function sortBy(place) {
      const numeric = columns[place].number ? -1 : 1;
      order = { column: place, direction: order.column === place ? -order.direction : numeric };
      draw();
    }

    function draw() {
      const column = columns[order.column];
      const kept = words
        ? rows.filter((row) => words.split(/\s+/).every((word) => columns.some((c) => text(c, row).toLowerCase().includes(word))))
        : [...rows];
      kept.sort((a, b) => compare(column.value(a), column.value(b), order.direction) || compare(name(a), name(b), 1));
      const drawn = all ? kept : kept.slice(0, MOST_ROWS);
      body.replaceChildren(...drawn.map((row) => make("tr", { class: mark?.(row) },
        make("th", { scope: "row" }, head ? head(row) : text(columns[0], row)),
        ...columns.slice(1).map((c) => make("td", { class: [c.number && "number", c.first && "first", c.className?.(row)]
          .filter(Boolean).join(" ") || null, title: c.hover?.(row) }, text(c, row))))));
      heads.forEach((th, place) => {
        if (place === order.column) th.setAttribute("aria-sort", order.direction > 0 ? "ascending" : "descending");
        else th.removeAttribute("aria-sort");
      });
      count.textContent = `${drawn.length} of ${rows.length} shown`;
      more.hidden = drawn.length === kept.length;
    }

    draw();
    const table = make("table", { "aria-label": label }, make("thead", {}, ...groupRow(columns), make("tr", {}, ...heads)), body);
    return { element: make("div", {}, make("div", { class: "tools" }, search, count, more),
      make("div", { class: "scroll", tabindex: "0" }, table)), draw };
  }

  /** The row of heads that span several columns, where there are any. */
  function groupRow(columns) {
    if (!columns.some((column) => column.group)) return [];
    const cells = [];
    for (const column of columns) {
      const last = cells.at(-1);
      if (last && column.group && last.group === column.group) last.span += 1;
      else cells.push({ group: column.group, span: 1 });
    }
    return [make("tr", {}, ...cells.map(({ group, span }) => group
      ? make("th", { colspan: span, scope: "colgroup", class: "group" }, group) : make("td", { colspan: span })))];
  }

  // The chosen pod

  const choice = { pod: null, number: "weighted", side: "both", use: "shares" };
  const running = (data.running?.workloads ?? []).flatMap((workload) => workload.examples);
  const cases = new Map([...running, ...data.tabled, ...data.pods].map((found) => [found.pod, found]));
  let redrawLists = [];

  const place = (fate) => fate.node ?? "pending";
  const refusal = (standing) => (standing?.refused
    ? [standing.refused.plugin, standing.refused.reasons.join(", ")].filter(Boolean).join(": ") : "");

  function choose(pod) {
    choice.pod = pod;
    history.replaceState(null, "", `#${encodeURIComponent(pod)}`);
    redrawLists.forEach((draw) => draw());
    drawDetail();
    byId("detail").scrollIntoView({ block: "nearest" });
  }

  function podButton(pod) {
    return cases.has(pod)
      ? make("button", { "aria-current": pod === choice.pod ? "true" : null, onclick: () => choose(pod) }, pod) : pod;
  }

  function drawDetail() {
    const found = cases.get(choice.pod);
    if (!found) return;
    const parts = [make("h2", {}, found.pod), make("p", {}, make("strong", {}, WORDS[found.change]), `: ${place(found.old)}`,
      found.change === "same" ? "" : ` \u2192 ${place(found.new)}`)];
    if (found.cause === "earlierPods") parts.push(make("p", {},
      "On the cluster that the old policy saw, the new one would decide alike: what differs is where pods before it went."));
    if (found.chance) parts.push(make("p", {}, "Both nodes tie under both policies: kube-scheduler takes either."));
    for (const side of SIDES) {
      const fate = found[side];
      const margin = fate.runnerUp === undefined ? "" : `, ahead of ${fate.runnerUp} by ${fate.margin}`;
      const why = fate.message ?? (fate.skipped ? `not tried: ${fate.skipped}` : "");
      const evicts = fate.preemption ? ` would evict ${fate.preemption.victims.join(", ")} from ${fate.preemption.node}` : "";
      parts.push(make("p", {}, make("strong", { class: side }, `${side}: `),
        fate.node ? `${fate.node}, score ${fate.score}, ${fate.feasible} feasible${margin}` : `${why}${evicts}`));
    }
    for (const [node, standings] of Object.entries(found.nodes ?? {})) {
      for (const side of SIDES) {
        const why = refusal(standings[side]);
        if (why && found[side === "old" ? "new" : "old"].node === node) parts.push(make("p", { class: "bad" },
          `${node} is refused by the ${side} policy: ${why}`));
      }
    }
    if (found.swings?.length) parts.push(swingTable(found));
    parts.push(...matrix(found));
    byId("detail").replaceChildren(...parts);
  }

  function swingTable(found) {
    const weight = ({ weight }) => (weight.old === weight.new ? shown(weight.old) : `${weight.old ?? "-"} \u2192 ${weight.new ?? "-"}`);
    return make("table", { "aria-label": "Plugins that changed their view" },
      make("caption", { class: "count" }, `points for ${found.new.node} over ${found.old.node}`),
      make("thead", {}, make("tr", {}, ...["plugin", "weight", "old", "new"].map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, ...found.swings.map((swing) => make("tr", {}, make("th", { scope: "row" }, swing.plugin),
        make("td", { class: "number" }, weight(swing)),
        ...SIDES.map((side) => make("td", { class: "number" }, signed(swing[side])))))));
  }

  /** What one policy says of one plugin on one node, as the number that is asked for. */
  function score(sheet, plugin, index) {
    const found = sheet.plugins.find((one) => one.name === plugin);
    if (!found || found.raw[index] === null) return null;
    if (choice.number === "raw") return found.raw[index];
    return choice.number === "normalized" ? found.normalized[index] : rounded(found.normalized[index] * found.weight);
  }

  function refused(sheet, index) {
    const why = sheet.refusals[sheet.refused[index]];
    return why ? refusal({ refused: why }) : "";
  }

  function matrix(found) {
    const tables = data.tables[found.pod];
    if (!tables) return [make("p", { class: "count" }, "The page holds no table of nodes for this pod: see the notes.")];
    const sides = choice.side === "both" ? SIDES : [choice.side];
    const plugins = tellingFirst(tables);
    const pairs = (group, title, value, rest = {}) => sides.map((side, place) => ({ group, label: side, title, number: true,
      first: place === 0, value: (index) => value(tables[side], index, side),
      className: (index) => (value(tables.old, index) !== value(tables.new, index) ? "changed" : null), ...rest }));
    const columns = [
      { label: "node", value: (index) => data.nodes[index].name },
      { label: "zone", value: (index) => data.nodes[index].zone },
      ...pairs("TOTAL", "sum of the weighted scores", (sheet, index) => sheet.totals[index]).map((column, place) => ({ ...column,
        text: (index) => (refused(tables[sides[place]], index) ? "refused" : shown(column.value(index))),
        hover: (index) => refused(tables[sides[place]], index) || null })),
      ...plugins.flatMap((plugin) => pairs(`${plugin} ${weights(tables, plugin)}`, plugin, (sheet, index) => score(sheet, plugin, index))),
      ...pairs("REFUSED BY", "the first plugin that refuses the node", refused, { number: false,
        className: () => "why" }),
    ];
    const silent = new Set(sides.flatMap((side) => tables[side].skipped));
    const everywhere = (plugin) => sides.every((side) => tables[side].skipped.includes(plugin));
    const skipped = [...silent].map((plugin) => (everywhere(plugin) ? plugin
      : `${plugin} (${sides.filter((side) => tables[side].skipped.includes(plugin)).join()})`));
    const badges = (index) => SIDES.filter((side) => found[side].node === data.nodes[index].name)
      .map((side) => make("span", { class: `badge ${side}` }, side.toUpperCase()));
    const { element } = grid({ columns, rows: data.nodes.map((_, index) => index), label: "nodes",
      sort: { column: columns.findIndex((column) => column.group === "TOTAL") + sides.length - 1, direction: -1 },
      name: (index) => data.nodes[index].name,
      head: (index) => make("span", {}, data.nodes[index].name, ...badges(index)),
      mark: (index) => (badges(index).length ? "chosen" : null) });
    element.id = "matrix";
    element.querySelector(".tools").append(
      picker("number", ["weighted", "normalized", "raw"], "score"), picker("side", ["both", ...SIDES], "policy"));
    return [make("h3", {}, "Nodes and plugins"), element,
      skipped.length ? make("p", { class: "count" }, `nothing to say about this pod: ${skipped.join(", ")}`) : null].filter(Boolean);
  }

  /** Names of the plugins: those that tell some nodes or the two policies apart come before those that give all the same. */
  function tellingFirst(tables) {
    const plugins = SIDES.flatMap((side) => tables[side].plugins);
    const names = [...new Set(plugins.map((plugin) => plugin.name))];
    const given = (name) => new Set(plugins.filter((plugin) => plugin.name === name)
      .flatMap((plugin) => plugin.normalized.filter((number) => number !== null).map((number) => number * plugin.weight)));
    const tells = new Map(names.map((name) => [name, given(name).size > 1]));
    return [...names.filter((name) => tells.get(name)), ...names.filter((name) => !tells.get(name))];
  }

  function weights(tables, plugin) {
    const found = SIDES.map((side) => tables[side].plugins.find((one) => one.name === plugin)?.weight);
    return found[0] === found[1] ? `\u00d7${found[0]}` : `\u00d7${found[0] ?? "-"} \u2192 \u00d7${found[1] ?? "-"}`;
  }

  function picker(key, values, label) {
    const select = make("select", { id: `pick-${key}`, onchange: () => {
      choice[key] = select.value;
      drawDetail();
      byId(`pick-${key}`).focus();
    } }, ...values.map((value) => make("option", { value, selected: choice[key] === value }, value)));
    return make("label", {}, `${label} `, select);
  }

  // The three views

  function podsView() {
    const others = data.tabled.filter((found) => !found.running);
    const known = new Set(others.map((row) => row.pod));
    const alike = data.unchanged.filter((row) => !known.has(row.pod)).map((row) => ({ pod: row.pod, change: "same", old: row, new: row }));
    const rows = [...data.pods, ...others, ...alike];
    if (!rows.length) return make("p", {}, "No pod is pending.");
    const list = grid({ rows, label: "pods", name: (row) => row.pod, head: (row) => podButton(row.pod),
      mark: (row) => (row.pod === choice.pod ? "chosen" : null), sort: { column: 1, direction: 1 },
      columns: [
        { label: "pod", value: (row) => row.pod },
        { label: "what becomes of it", value: (row) => Object.keys(WORDS).indexOf(row.change), text: (row) => WORDS[row.change] },
        { label: "old node", value: (row) => place(row.old) },
        { label: "new node", value: (row) => place(row.new) },
        { label: "old margin", number: true, value: (row) => row.old.margin ?? null },
        { label: "new margin", number: true, value: (row) => row.new.margin ?? null },
        { label: "most changed plugin", value: (row) => row.swings?.[0]?.plugin ?? null,
          text: (row) => (row.swings?.length
            ? `${row.swings[0].plugin} ${signed(row.swings[0].old)} \u2192 ${signed(row.swings[0].new)}` : "") },
      ] });
    redrawLists.push(list.draw);
    return list.element;
  }

  function runningView() {
    if (!data.running) return make("p", {}, "Running pods were not looked at.");
    const said = `${data.running.judged} of ${data.running.pods} running pods judged, each as if it were pending and all others stayed.`;
    if (!data.running.workloads.length) return make("p", {}, `${said} All would fare alike.`);
    const counted = (key, label) => ({ label, number: true, value: (row) => row[key] });
    const list = grid({ rows: data.running.workloads, label: "workloads", name: (row) => row.workload,
      sort: { column: 2, direction: -1 },
      columns: [{ label: "workload", value: (row) => row.workload }, counted("pods", "pods"), counted("moved", "elsewhere"),
        counted("newlyPending", "pending"), counted("newlyPlaced", "placed"),
        { label: "for example", value: (row) => row.examples[0]?.pod, text: (row) => (row.examples[0]
          ? `${row.examples[0].pod}: ${place(row.examples[0].old)} \u2192 ${place(row.examples[0].new)}` : "") }] });
    const examples = running.filter((found) => data.tables[found.pod]);
    return make("div", {}, make("p", {}, said), list.element,
      examples.length ? make("p", {}, "Look closely at: ", ...examples.flatMap((found) => [podButton(found.pod), " "])) : null);
  }

  function usageTable(rows, label) {
    const share = (row, resource, which) => {
      const numbers = row.amounts[resource].numbers;
      return numbers[3] ? rounded(numbers[which] / numbers[3]) : null;
    };
    const amount = (row, resource, which) => `${row.amounts[resource].quantities[which]} of ${row.amounts[resource].quantities[3]}`;
    const columns = [{ label, value: (row) => row.name || "(none)" },
      ...(label === "node" ? [{ label: "zone", value: (row) => row.zone }] : []),
      ...data.usage.resources.flatMap((resource) => ["now", "old", "new"].map((word, which) => ({ group: resource, label: word,
        number: true, first: which === 0, value: (row) => share(row, resource, which),
        text: (row) => (share(row, resource, which) === null ? "" : choice.use === "amounts" ? amount(row, resource, which)
          : `${Math.round(100 * share(row, resource, which))}%`),
        className: (row) => (which === 2 && row.amounts[resource].numbers[1] !== row.amounts[resource].numbers[2] ? "changed" : null),
      })))];
    return grid({ columns, rows, label: `${label}s`, name: (row) => row.name });
  }

  function usageView() {
    const tables = [usageTable(data.usage.zones, "zone"), usageTable(data.usage.nodes, "node")];
    const select = make("select", { id: "pick-use", onchange: () => {
      choice.use = select.value;
      tables.forEach((table) => table.draw());
    } }, ...["shares", "amounts"].map((value) => make("option", { value }, value)));
    return make("div", {}, make("p", {}, "What is requested of the allocatable amounts: now, and with the pending pods placed by ",
      "the old and by the new policy. ", make("label", {}, "shown as ", select)),
      make("h2", {}, "Zones"), tables[0].element, make("h2", {}, "Nodes"), tables[1].element);
  }

  // The page

  const tabs = [...document.querySelectorAll('[role="tab"]')];

  function open(tab) {
    for (const other of tabs) {
      other.setAttribute("aria-selected", String(other === tab));
      other.tabIndex = other === tab ? 0 : -1;
      byId(other.getAttribute("aria-controls")).hidden = other !== tab;
    }
    byId("detail").hidden = tab.id === "tab-usage";
  }

  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => open(tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(index + step + tabs.length) % tabs.length];
      open(next);
      next.focus();
    });
  });

  byId("policies").append(make("strong", { class: "old" }, "old "), data.old.policy, " \u2192 ",
    make("strong", { class: "new" }, "new "), data.new.policy);
  byId("counts").append(...Object.keys(WORDS).filter((change) => data.summary[change]).map((change) =>
    make("li", {}, make("strong", {}, shown(data.summary[change])), ` ${WORDS[change]}`)));
  if (data.notes.length) {
    byId("notes").hidden = false;
    byId("notes").append(...data.notes.map((note) => make("li", {}, note)));
  }
  byId("view-pods").append(podsView());
  byId("view-running").append(runningView());
  byId("view-usage").append(usageView());
  open(tabs[0]);
  const asked = decodeURIComponent(location.hash.slice(1));
  const first = cases.has(asked) ? asked
    : (data.pods.find((found) => data.tables[found.pod]) ?? data.pods[0] ?? data.tabled.find((found) => !found.running))?.pod;
  if (first) {
    choice.pod = first;
    redrawLists.forEach((draw) => draw());
    drawDetail();
  }
})();
