// An editor of the code that a live network draws from.

import { drawOutput } from "pictures";
import { short } from "numbers";
import { make, network as current, state } from "main";
import { placeName } from "views";
import { makeNetwork } from "network";

export function connectLive(network, body) {
  if (!network.live) {
    body.replaceChildren(make("p", { className: "hint", textContent: "This network has no live form, or is too large for a page. Its outputs above were computed beforehand." }));
    return { moved() {} };
  }
  const { spec, parts } = network.live, { draw } = makeNetwork(spec);
  const named = parts.length === network.factors.length;
  const partOf = parts.flatMap((length, part) => Array(length).fill(part));
  const off = new Set(), edits = new Map();
  let remembered = null, share = 0, due = 0;

  const range = network.live.codes.values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [0, 0]);
  const title = (part) => (named ? network.factors[part] : parts.length > 1 ? `part ${part + 1}` : "all factors");
  const sliders = partOf.map((part, unit) => {
    const name = `${title(part)}, unit ${unit}`;
    const slider = make("input", { type: "range", min: range[0], max: range[1], step: "any", title: `${name}: drag, or double-click to switch`, ariaLabel: name });
    const edit = (value) => { edits.set(unit, value); show(); };
    slider.addEventListener("input", () => edit(Number(slider.value)));
    const toggle = () => edit(Math.abs(code()[unit]) > range[1] / 2 ? 0 : range[1]);
    slider.addEventListener("dblclick", toggle);
    slider.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { toggle(); event.preventDefault(); } });
    return slider;
  });
  const switches = parts.map((_, part) => {
    const box = make("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => { box.checked ? off.delete(part) : off.add(part); show(); });
    return make("label", {}, box, ` ${title(part)} on`);
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
    make("p", { className: "hint", textContent: `Seed ${network.seeds[0]} runs in this page. Drag a unit of its code, or double-click to switch it on and off. Switch on a second group of one factor's units to ask for two things at once. Moving on the map starts again from the code there.` }),
    make("div", { className: "live" },
      make("div", {}, ...parts.map((_, part) => make("div", { className: "part" }, make("h3", { textContent: `code of ${title(part)}` }),
        make("div", { className: "units" }, ...sliders.filter((_, unit) => partOf[unit] === part)))),
        make("div", { className: "controls" }, ...switches,
          button("Keep this code", () => { remembered = code(); kept.textContent = ` the code kept at ${placeName()}`; blending.hidden = false; }),
          button("Add the kept code", () => { const base = code(); remembered?.forEach((value, unit) => edits.set(unit, base[unit] + value)); }),
          button("Reset", reset)), blending),
      make("figure", { className: "output" }, canvas, make("figcaption", { textContent: "what the live network draws" }), note)));

  function reset() {
    edits.clear();
    off.clear();
    share = blend.value = 0;
    switches.forEach((label) => { label.firstChild.checked = true; });
  }

  function code() {
    const found = network.code(state.at);
    return found.map((value, unit) => {
      if (edits.has(unit)) return edits.get(unit);
      if (off.has(partOf[unit])) return 0;
      return remembered ? (1 - share) * value + share * remembered[unit] : value;
    });
  }

  function show() {
    if (!due) due = setTimeout(drawNow, 0);
  }

  function drawNow() {
    due = 0;
    if (current !== network) return;
    const wanted = code(), start = performance.now(), { output } = draw(wanted), took = performance.now() - start;
    sliders.forEach((slider, unit) => { slider.value = wanted[unit]; });
    drawOutput(canvas, output, network);
    note.textContent = `${short(took)} ms a drawing`;
    Object.assign(body.dataset, { ms: took, sum: output.reduce((a, b) => a + b, 0) });
  }

  return { moved() { edits.clear(); show(); } };
}
