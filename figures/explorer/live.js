// An editor of the code that a live network draws from.

import { drawOutput } from "pictures";
import { short } from "numbers";
import { make, network as current, state } from "main";
import { placeHere } from "views";
import { makeNetwork } from "network";

export function connectLive(network, body) {
  if (!network.live) {
    body.replaceChildren(make("p", { className: "hint", textContent: "This network has no live form, or is too large for a page. Its outputs above were computed beforehand." }));
    return { moved() {} };
  }
  const { factors } = network.live.table, { draw } = makeNetwork(network.live.operations);
  const off = new Set(), edits = new Map();
  let remembered = null, share = 0, due = 0;

  // A slider and a switch for each unit, in its factor's range; units that no factor moves have none.
  const controls = factors.map(({ name: factor, entries, rows, absent }) => {
    const known = [0, ...rows.values, ...absent.values], [low, high] = [Math.min(...known), Math.max(...known)];
    return entries.map((unit) => {
      const name = `${factor}, unit ${unit}`, edit = (value) => { edits.set(unit, value); show(); };
      const slider = make("input", { type: "range", min: low, max: high, step: "any", title: name, ariaLabel: name });
      slider.addEventListener("input", () => edit(Number(slider.value)));
      const toggle = make("button", { title: `${name}: on or off`, ariaLabel: `${name}: on or off` });
      const isOn = (code) => code[unit] > high / 2;
      toggle.addEventListener("click", () => edit(isOn(code()) ? 0 : high));
      const follow = (code) => { slider.value = code[unit]; toggle.setAttribute("aria-pressed", isOn(code)); };
      return { follow, element: make("span", { className: "unit" }, slider, toggle) };
    });
  });
  const switches = factors.map(({ name }, k) => {
    const box = make("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => { box.checked ? off.delete(k) : off.add(k); show(); });
    return make("label", {}, box, ` ${name} on`);
  });
  const button = (textContent, action) => {
    const found = make("button", { textContent });
    found.addEventListener("click", () => { action(); show(); });
    return found;
  };
  const blend = make("input", { type: "range", min: 0, max: 1, step: 0.05, value: 0, ariaLabel: "Blend with the kept code" });
  blend.addEventListener("input", () => { share = Number(blend.value); show(); });
  const kept = make("span"), blending = make("label", { hidden: true, className: "controls" }, "Blend: here ", blend, kept);
  const canvas = make("canvas"), note = make("p", { className: "hint" });
  body.replaceChildren(
    make("p", { className: "hint", textContent: `Seed ${network.seeds[0]} runs in this page. Drag a unit of its code, or press the button below it to switch it on or off. Switch on a second group of one factor's units to ask for two things at once. Moving on the map starts again from the code there.` }),
    make("div", { className: "live" },
      make("figure", { className: "output" }, canvas, make("figcaption", { textContent: "what the live network draws" }), note),
      make("div", {}, ...factors.map(({ name }, k) => make("div", { className: "part" }, make("h3", { textContent: `code of ${name}` }),
        make("div", { className: "units" }, ...controls[k].map(({ element }) => element)))),
        make("div", { className: "controls" }, ...switches,
          button("Keep this code", () => { remembered = code(); kept.textContent = ` the code kept at ${placeHere()}`; blending.hidden = false; }),
          button("Add the kept code", () => { const base = code(); remembered?.forEach((value, unit) => edits.set(unit, base[unit] + value)); }),
          button("Reset", reset)), blending)));

  function reset() {
    edits.clear();
    off.clear();
    share = blend.value = 0;
    switches.forEach((label) => { label.firstChild.checked = true; });
  }

  function code() {
    const isOff = new Set([...off].flatMap((k) => factors[k].entries));
    return network.code(state.at, off).map((value, unit) => {
      if (edits.has(unit)) return edits.get(unit);
      return remembered && !isOff.has(unit) ? (1 - share) * value + share * remembered[unit] : value;
    });
  }

  function show() {
    if (!due) due = setTimeout(drawNow, 0);
  }

  function drawNow() {
    due = 0;
    if (current !== network) return;
    const wanted = code(), start = performance.now(), { output } = draw(wanted), took = performance.now() - start;
    controls.flat().forEach(({ follow }) => follow(wanted));
    drawOutput(canvas, output, network);
    note.textContent = `computed here in ${short(took)} ms`;
    Object.assign(body.dataset, { ms: took, sum: output.reduce((a, b) => a + b, 0) });
  }

  return { moved() { edits.clear(); show(); } };
}
