// The page: one choice of hold-out and network, and what eight networks have learnt so far.

import { color, drawMap, drawOutput, makeScale } from "pictures";
import { cellsOf, codeOf, imageOf, kernelRegression, scoresOf } from "bumps";
import { ALSO_SHOWN, CODES, codesFor, DECODERS, fieldsOf, GRIDS, pythonOf, REGIONS, runOf, SEEDS } from "settings";
import { GUESSES, guessOf, STEPS } from "tour";
import { shareRight, verdictOf } from "verdict";

const $ = (id) => document.getElementById(id);
const make = (tag, fields = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), fields);
  element.append(...children);
  return element;
};

const choice = { grid: GRIDS[0], decoder: "cnn", code: "bump", also: "nothing", heldOut: REGIONS.square(GRIDS[0]) };
const state = { at: null, brush: null, showErrors: false, tour: 0, guess: null, isTraining: false, isPaused: false };
let due = 0, regressing = 0, workers = [], reports = new Map(), course = [], baseline = null, workerAddress = "", started = 0;

export function start(address) {
  workerAddress = address;
  options("decoder", Object.entries(DECODERS).map(([name, { label }]) => [name, label]));
  options("also", Object.entries(ALSO_SHOWN));
  options("grid", GRIDS.map((grid) => [grid, `${grid} × ${grid}`]));
  for (const id of ["decoder", "code", "also", "grid"]) $(id).addEventListener("change", () => change({ [id]: id === "grid" ? Number($(id).value) : $(id).value }));
  for (const name of Object.keys(REGIONS)) {
    $("regions").append(button(name, () => change({ heldOut: REGIONS[name](choice.grid) })));
  }
  $("regions").append(button("clear", () => change({ heldOut: new Uint8Array(choice.grid ** 2) })));
  $("train").addEventListener("click", () => (state.isTraining ? halt() : train()));
  $("errors").addEventListener("change", () => { state.showErrors = $("errors").checked; drawResults(); });
  $("copy").addEventListener("click", copy);
  $("tour-next").addEventListener("click", () => showStep((state.tour + 1) % STEPS.length));
  $("tour-back").addEventListener("click", () => showStep((state.tour + STEPS.length - 1) % STEPS.length));
  connectRegion();
  document.addEventListener("visibilitychange", () => pause(document.hidden));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  showStep(0);
  document.body.dataset.ready = "yes";
}

const button = (textContent, action) => {
  const element = make("button", { textContent, type: "button" });
  element.addEventListener("click", action);
  return element;
};

function options(id, pairs) {
  $(id).replaceChildren(...pairs.map(([value, textContent]) => make("option", { value, textContent })));
}

// --- what is chosen -------------------------------------------------------------------------

export function change(fields) {
  stop();
  Object.assign(choice, fields);
  if ("grid" in fields) choice.heldOut = REGIONS.square(choice.grid);
  const codes = codesFor(choice);
  if (!codes.includes(choice.code)) choice.code = codes[0];
  options("code", codes.map((name) => [name, CODES[name]]));
  for (const id of ["decoder", "code", "also", "grid"]) $(id).value = choice[id];
  const inMiddle = (choice.grid / 2) * choice.grid + choice.grid / 2;
  state.at = Math.min(state.at ?? inMiddle, choice.grid ** 2 - 1);
  [reports, course, baseline] = [new Map(), [], null];
  $("verdict").textContent = "";
  if (STEPS[state.tour].choice.region) forget();  // a guess is of what the tour has set
  drawAll();
}

function forget() {
  state.guess = null;
  $("tour-after").textContent = "";
  [...$("guesses").children].forEach((element) => element.removeAttribute("aria-pressed"));
}

const heldOutCount = () => choice.heldOut.reduce((a, b) => a + b, 0);

function isPossible() {
  const count = heldOutCount();
  return count > 0 && count <= choice.heldOut.length / 2;
}

// --- training -------------------------------------------------------------------------------

function train() {
  stop();
  [reports, course, baseline] = [new Map(), [], null];
  const run = runOf(choice);
  const count = Math.min(SEEDS, Math.max(1, navigator.hardwareConcurrency || 2));
  workers = Array.from({ length: count }, (_, k) => {
    const worker = new Worker(workerAddress, { type: "module" });
    worker.onmessage = ({ data }) => receive(data);
    worker.postMessage({ type: "start", run, seeds: [...Array(SEEDS).keys()].filter((seed) => seed % count === k) });
    return worker;
  });
  [state.isTraining, state.isPaused, started] = [true, false, performance.now()];
  regressing = setTimeout(() => { baseline = regress(run); drawResults(); }, 0);
  pause(document.hidden);
  drawAll();
}

function stop() {
  clearTimeout(regressing);
  workers.forEach((worker) => worker.terminate());
  [workers, state.isTraining, state.isPaused] = [[], false, false];
}

function halt() {
  stop();
  drawResults();
}

function pause(isPaused) {
  if (!state.isTraining) return;
  state.isPaused = isPaused;
  workers.forEach((worker) => worker.postMessage({ type: isPaused ? "pause" : "resume" }));
  drawProgress();
}

function receive(report) {
  if (!state.isTraining) return;
  reports.set(report.seed, report);
  const ofAll = [...reports.values()], share = (isHeldOut) => mean(ofAll.map(({ rendered }) => shareRight(rendered, choice.heldOut, isHeldOut)));
  if (ofAll.length === SEEDS) course.push({ step: mean(ofAll.map(({ step }) => step)), id: share(false), ood: share(true) });
  if (ofAll.length === SEEDS && ofAll.every(({ done }) => done)) finish();
  due ||= setTimeout(() => { due = 0; drawResults(); }, 300);  // workers need the cores more
}

// what kernel ridge regression draws, from the codes that training shows whole
function regress({ grid, code, points, heldOut }) {
  const whole = points.filter((point) => !point.some(Number.isNaN)), coded = (list) => list.map((point) => codeOf(point, grid, code));
  const outputs = kernelRegression(coded(whole), whole.map((point) => imageOf(point, grid)), coded(cellsOf(grid)));
  return { outputs, ...scoresOf(outputs, grid, heldOut) };
}

function finish() {
  const run = runOf(choice), shares = (isHeldOut) => [...reports.values()].map(({ rendered }) => shareRight(rendered, choice.heldOut, isHeldOut));
  baseline ??= regress(run);
  const ood = shares(true), words = verdictOf(ood, shares(false), shareRight(baseline.rendered, choice.heldOut, true));
  stop();
  $("verdict").textContent = words;
  const step = STEPS[state.tour], right = guessOf(ood);
  if (state.guess) $("tour-after").textContent = `You guessed ${GUESSES[state.guess]}: ${state.guess === right ? "right" : `it is ${GUESSES[right]}`}. ${step.after}`;
  Object.assign(document.body.dataset, { seconds: (performance.now() - started) / 1000, ood: JSON.stringify(ood), baseline: shareRight(baseline.rendered, choice.heldOut, true) });
}

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

// --- the tour -------------------------------------------------------------------------------

function showStep(index) {
  const { title, words, choice: { region, ...fields } } = STEPS[index];
  [state.tour, state.guess] = [index, null];
  change(region ? { ...fields, heldOut: REGIONS[region](choice.grid) } : {});
  $("tour-title").textContent = `${index + 1} of ${STEPS.length}: ${title}`;
  $("tour-words").textContent = words;
  $("tour-after").textContent = "";
  $("guesses").replaceChildren(...Object.entries(GUESSES).map(([name, label]) => {
    const element = button(label, () => {
      state.guess = name;
      [...$("guesses").children].forEach((other) => other.setAttribute("aria-pressed", other === element));
      if (isPossible()) train();
    });
    return element;
  }));
}

// --- the map of what is held out ------------------------------------------------------------

function connectRegion() {
  const board = $("region");
  const cellAt = ({ clientX, clientY }) => {
    const { left, top, width, height } = board.firstElementChild.getBoundingClientRect(), { grid } = choice;
    const place = (share) => Math.min(Math.max(Math.floor(share * grid), 0), grid - 1);
    return (grid - 1 - place((clientY - top) / height)) * grid + place((clientX - left) / width);
  };
  const paint = (cell) => {
    const heldOut = Uint8Array.from(choice.heldOut);
    heldOut[cell] = state.brush;
    state.at = cell;
    change({ heldOut });
  };
  board.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    board.focus({ preventScroll: true });
    board.setPointerCapture(event.pointerId);
    const cell = cellAt(event);
    state.brush = 1 - choice.heldOut[cell];
    paint(cell);
  });
  board.addEventListener("pointermove", (event) => state.brush !== null && paint(cellAt(event)));
  for (const name of ["pointerup", "pointercancel"]) board.addEventListener(name, () => { state.brush = null; });
  board.addEventListener("keydown", (event) => {
    const { grid } = choice, [x, y] = [state.at % grid, Math.floor(state.at / grid)];
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (event.key === " " || event.key === "Enter") {
      state.brush = 1 - choice.heldOut[state.at];
      paint(state.at);
      state.brush = null;
    } else if (moves[event.key]) {
      const [dx, dy] = moves[event.key], inside = (value) => Math.min(Math.max(value, 0), grid - 1);
      look(inside(y + dy) * grid + inside(x + dx));
    } else return;
    event.preventDefault();
  });
}

function look(cell) {
  state.at = cell;
  drawRegion();
  drawOutputs();
}

// --- drawing --------------------------------------------------------------------------------

function drawAll() {
  drawRegion();
  drawResults();
}

const rowsOf = (grid) => Array.from({ length: grid }, (_, y) => Array.from({ length: grid }, (_, x) => y * grid + x));
const inWords = (cell) => `x = ${cell % choice.grid}, y = ${Math.floor(cell / choice.grid)}`;

function drawRegion() {
  const { grid, heldOut } = choice, scale = makeScale(["card", "held-out"]);
  drawMap($("region").querySelector("canvas"), rowsOf(grid), (cell) => 0.6 * heldOut[cell], scale, { room: 288, outline: heldOut });
  placeCursor($("region").querySelector(".cursor"));
  const count = heldOutCount(), total = heldOut.length;
  $("count").textContent = `${count} of ${total} combinations are held out (red). Cursor: ${inWords(state.at)}, ${heldOut[state.at] ? "held out" : "in training"}.`;
  $("train").disabled = !state.isTraining && !isPossible();
  $("why").textContent = count === 0 ? "Draw a region, or choose one." : isPossible() ? "" : "At most half of the combinations can be held out.";
  $("python").textContent = isPossible() ? pythonOf(choice) : "";
}

function placeCursor(cursor) {
  const { grid } = choice, percent = (place) => `${(100 * (place + 0.5)) / grid}%`;
  cursor.style.left = percent(state.at % grid);
  cursor.style.top = percent(grid - 1 - Math.floor(state.at / grid));
}

function drawResults() {
  drawProgress();
  drawMaps();
  drawOutputs();
  drawCourse();
}

function drawProgress() {
  const total = fieldsOf(choice)["training.steps"], done = [...reports.values()].reduce((sum, { step }) => sum + step, 0) / SEEDS;
  $("train").textContent = state.isTraining ? "Stop" : "Train eight networks";
  $("progress").value = reports.size ? done / total : 0;
  const place = `step ${Math.round(done)} of ${total}`, ended = done < total ? `stopped at ${place}` : "done";
  $("progress-words").textContent = state.isPaused ? "paused while the page is hidden" : state.isTraining ? place : reports.size ? ended : "";
}

// {name, outputs, errors, rendered} of every network, and of kernel ridge regression
function predictors() {
  const networks = Array.from({ length: SEEDS }, (_, seed) => ({ name: `seed ${seed}`, ...reports.get(seed) }));
  return [...networks, { name: "KRR baseline", ...baseline }];
}

function drawMaps() {
  const { grid, heldOut } = choice, blank = 0.06 * 144 / grid ** 2;  // of an image with a bump: about its mean square
  const figures = predictors().map(({ name, rendered, errors }, k) => {
    const figure = $("maps").children[k] ?? $("maps").appendChild(make("figure", { className: "output" },
      make("div", { className: "map small" }, make("canvas", { tabIndex: -1 }), make("div", { className: "cursor" })), make("figcaption")));
    const canvas = figure.querySelector("canvas");
    const share = (cell) => !rendered ? 0.3 : state.showErrors ? errors[cell] / blank : 1 - rendered[cell];
    drawMap(canvas, rowsOf(grid), share, makeScale(rendered ? ["right", "wrong"] : ["card", "line"]), { room: 132, outline: heldOut });
    canvas.onclick = ({ offsetX, offsetY }) => look((grid - 1 - Math.floor(offsetY / canvas.clientHeight * grid)) * grid + Math.floor(offsetX / canvas.clientWidth * grid));
    const right = rendered ? `${Math.round(100 * shareRight(rendered, heldOut, true))}%` : "–";
    figure.querySelector("figcaption").textContent = `${name}: ${right}`;
    canvas.ariaLabel = `${name}: ${right} of the held-out combinations are right`;
    return figure;
  });
  $("maps").replaceChildren(...figures);
}

function drawOutputs() {
  const { grid } = choice, size = grid * grid, cell = state.at;
  const [x, y] = [cell % grid, Math.floor(cell / grid)], how = { kind: "grey", shape: [grid, grid], origin: "lower", low: 0, high: 1 };
  const shown = [{ name: "target", image: imageOf([x, y], grid) },
    ...predictors().map(({ name, outputs, rendered }) => ({ name, image: outputs?.subarray(cell * size, (cell + 1) * size), right: rendered?.[cell] }))];
  shown.forEach(({ name, image, right }, k) => {
    const figure = $("outputs").children[k] ?? $("outputs").appendChild(make("figure", { className: "output" }, make("canvas"), make("figcaption")));
    drawOutput(figure.firstElementChild, image ?? new Float32Array(size), how);
    figure.lastElementChild.textContent = right === undefined ? name : `${name} ${right ? "✓" : "✗"}`;
  });
  $("outputs-title").textContent = `Outputs at ${inWords(cell)} (${choice.heldOut[cell] ? "held out" : "in training"})`;
  document.querySelectorAll("#maps .cursor").forEach(placeCursor);
}

function drawCourse() {
  const canvas = $("course"), [width, height] = [canvas.width, canvas.height] = [600, 150], context = canvas.getContext("2d");
  const total = fieldsOf(choice)["training.steps"];
  const x = (step) => 6 + (width - 12) * step / total, y = (share) => height - 6 - (height - 12) * share;
  context.clearRect(0, 0, width, height);
  const line = (points, stroke, dash = []) => {
    context.strokeStyle = stroke;
    context.lineWidth = 3;
    context.setLineDash(dash);
    context.beginPath();
    points.forEach(([step, share], k) => (k ? context.lineTo(x(step), y(share)) : context.moveTo(x(step), y(share))));
    context.stroke();
  };
  for (const share of [0, 1]) line([[0, share], [total, share]], color("line"));
  if (baseline) {
    const share = shareRight(baseline.rendered, choice.heldOut, true);
    line([[0, share], [total, share]], color("muted"), [6, 6]);
  }
  line(course.map(({ step, id }) => [step, id]), color("shown"));
  line(course.map(({ step, ood }) => [step, ood]), color("held-out"));
  const last = course.at(-1), percent = (share) => `${Math.round(100 * share)}%`;
  canvas.ariaLabel = last ? `Right in training: ${percent(last.id)}; held out: ${percent(last.ood)}` : "Nothing is trained yet";
}

async function copy() {
  const text = $("python").textContent;
  try {
    await navigator.clipboard.writeText(text);
    $("copied").textContent = "copied";
  } catch {
    getSelection().selectAllChildren($("python"));
    $("copied").textContent = "selected: copy it with the keyboard";
  }
}
