// What a reader can press, drag and choose.

import { press, startGuessing } from "guess";
import { $, canGuess, change, choose, chooseBeside, drawAll, isComparable, make, network, payload, snap, state } from "main";

let selecting = false;

const RIGHT = "Right: shape, place, size and contrast are what is asked, within bounds, and the drawing is more like it than like the nearest combination outside the held-out region.";

export function connectControls() {
  const map = $("map");
  map.addEventListener("pointerdown", (event) => {
    map.setPointerCapture(event.pointerId);
    const from = selecting || event.shiftKey ? place(event).map(Math.round) : null;
    const drag = (moved) => (from ? select(from, place(moved).map(Math.round)) : moveTo(place(moved)));
    drag(event);
    map.addEventListener("pointermove", drag);
    const end = () => {
      map.removeEventListener("pointermove", drag);
      if (from) selectNext(false);
    };
    for (const type of ["pointerup", "pointercancel"]) map.addEventListener(type, end, { once: true });
  });
  map.addEventListener("keydown", onKey);
  $("network").addEventListener("change", async (event) => { await choose(event.target.selectedIndex); drawAll(); });
  $("beside").addEventListener("change", async (event) => { await chooseBeside(Number(event.target.value)); drawAll(); });
  $("guess").addEventListener("click", () => (state.guess ? change({ guess: null }) : startGuessing()));
  $("next").addEventListener("click", startGuessing);
  $("score").addEventListener("change", (event) => change({ score: event.target.value }));
  $("step").addEventListener("input", (event) => change({ step: Number(event.target.value) }));
  $("seed").addEventListener("input", (event) => change({ seed: Number(event.target.value) }));
  $("bright").addEventListener("change", (event) => change({ bright: event.target.checked }));
  $("select").addEventListener("click", () => selectNext(!selecting));
  $("clear").addEventListener("click", () => change({ box: null }));
  $("copy").addEventListener("click", () => copy($("python").textContent, "Copied the Python."));
  $("link").addEventListener("click", () => copy(location.href, "Copied the link."));
}

function selectNext(on) {
  selecting = on;
  $("select").setAttribute("aria-pressed", on);
}

async function copy(text, done) {
  try {
    await navigator.clipboard.writeText(text);
    $("copied").textContent = done;
  } catch {  // a page from disk may be refused
    const area = make("textarea", { value: text });
    document.body.append(area);
    area.select();
    $("copied").textContent = document.execCommand("copy") ? done : "Copying was refused: select the text below.";
    area.remove();
  }
}

// Where a pointer is on the map, one place for each axis of the map, inside it.
function place(event) {
  const { left, top, width, height } = $("map").getBoundingClientRect();
  const shares = [(event.clientX - left) / width, 1 - (event.clientY - top) / height];
  return state.axes.map((axis, k) => {
    const size = network.sizes[axis];
    return Math.min(Math.max(shares[k] * size - 0.5, 0), size - 1);
  });
}

function moveTo(places) {
  const at = [...state.at];
  state.axes.forEach((axis, k) => { at[axis] = snap(places[k], axis); });
  change({ at }, "move");
}

function select(from, to) {
  const box = from.flatMap((first, k) => [Math.min(first, to[k]), Math.max(first, to[k])]);
  change({ box: box.length === 2 ? [...box, 0, 0] : box }, "move");
}

function onKey(event) {
  const arrows = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowDown: [1, -1], ArrowUp: [1, 1] };
  const others = {
    PageUp: { step: Math.min(state.step + 1, network.steps.length - 1) },
    PageDown: { step: Math.max(state.step - 1, 0) },
    "]": { seed: Math.min(state.seed + 1, network.seeds.length - 1) },
    "[": { seed: Math.max(state.seed - 1, -1) },
    Escape: { box: null },
  };
  if (event.key in others) change(others[event.key]);
  else if (!(event.key in arrows)) return;
  else {
    const [k, sign] = arrows[event.key], axis = state.axes[k], at = [...state.at];
    if (axis === undefined) return;
    const whole = event.shiftKey ? 0.5 : 1;
    at[axis] = snap(at[axis] + sign * (network.hasHalfSteps(state.step) && network.axes[axis].real ? whole : 1), axis);
    change({ at }, "move");
  }
  event.preventDefault();
}

// The controls as the network and the state have them.
export function describeControls() {
  const last = network.steps.length - 1, seeds = network.seeds;
  $("network").selectedIndex = state.network;
  $("network").parentElement.hidden = payload.networks.length < 2;
  $("about").textContent = network.about;
  const others = payload.networks.map(({ name }, index) => [name, index]).filter(([, index]) => isComparable(index));
  $("beside").replaceChildren(...[["nothing", -1], ...others].map(([textContent, value]) => make("option", { textContent, value })));
  $("beside").value = state.beside;
  $("beside").parentElement.hidden = !others.length;
  $("invitation").hidden = !canGuess();
  $("guess").textContent = state.guess ? "Stop guessing" : `${press()} to play`;
  $("score").replaceChildren(...Object.entries(network.scores).map(([name, { hit }]) =>
    make("option", { value: name, textContent: hit ? `right or wrong: ${name}` : `error: ${name}` })));
  $("score").value = state.score;
  $("right").textContent = network.positions && state.score === "rendered" ? RIGHT : "";
  $("thinned").textContent = network.thinned;
  Object.assign($("step"), { max: last, value: state.step });
  $("bright").checked = state.bright;
  $("bright").parentElement.hidden = network.kind !== "image";
  $("halves").hidden = !network.hasHalfSteps(state.step);
  $("signed-legend").hidden = network.kind === "curve";
  $("place-legend").hidden = !network.positions;
  $("step-name").textContent = `: ${network.steps[state.step]} of ${network.steps[last]}`;
  Object.assign($("seed"), { max: seeds.length - 1, value: state.seed });
  $("seed-name").textContent = state.seed < 0 ? `: all ${seeds.length}` : `: ${seeds[state.seed]} alone`;
  const shownOf = network.all_seeds > seeds.length ? ` of ${network.all_seeds}` : "";
  $("seed-name").textContent += shownOf;
  const [across, up] = state.axes;
  const arrow = (axis) => {
    const { name, labels = [] } = network.axes[axis] ?? {};
    return name ? `${name}${labels.length ? `: ${labels.join(", ")}` : ""} →` : "";
  };
  $("across").textContent = arrow(across);
  $("up").textContent = arrow(up);
  describeAxes();
}

// With more than two factors: which are the map's, and the values of the others.
function describeAxes() {
  const { axes } = network;
  $("axes").className = "controls";
  $("axes").replaceChildren(...(axes.length < 3 ? [] : ["Across", "Up"].map((title, k) => {
    const list = make("select", { ariaLabel: title }, ...axes.map(({ name }) => make("option", { textContent: name })));
    list.selectedIndex = state.axes[k];
    list.addEventListener("change", () => {
      const wanted = [...state.axes];
      if (wanted[1 - k] === list.selectedIndex) wanted[1 - k] = wanted[k];
      wanted[k] = list.selectedIndex;
      change({ axes: wanted, box: null });
    });
    return make("label", {}, `${title} `, list);
  })));
  $("others").replaceChildren(...axes.map((axis, index) => {
    if (state.axes.includes(index)) return "";
    const here = state.at[index], move = (value) => change({ at: state.at.with(index, value) });
    const nameOf = (k) => axis.labels[k] ?? String(Number(axis.values[k].toPrecision(4)));
    if (!axis.real) {
      const list = make("select", { name: axis.name }, ...axis.values.map((_, k) => make("option", { textContent: nameOf(k) })));
      list.selectedIndex = here;
      list.addEventListener("change", () => move(list.selectedIndex));
      return make("label", { className: "controls" }, `${axis.name} `, list);
    }
    const slider = make("input", { type: "range", name: axis.name, min: 0, max: axis.values.length - 1, value: here });
    slider.addEventListener("change", () => move(Number(slider.value)));
    return make("label", { className: "controls" }, `${axis.name} = ${nameOf(here)} `, slider);
  }));
}
