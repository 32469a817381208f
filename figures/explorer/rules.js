// Simple rules that may draw the same, the course of training, and the same view in Python.

import { fitted, interval, short } from "numbers";
import { color, drawOutput } from "pictures";
import { $, make, network, one, state, views } from "main";
import { brightened } from "views";

// Pictures that need no combining, each with the parts that it is a sum of.
function rules(cell, seed) {
  const seen = network.everyCell.filter((other) => !network.held_out.values[other]);
  const at = network.place(cell), truth = network.truth(seed, at);
  const drawnAt = (other) => network.output(state.step, seed, network.place(other));
  const truthAt = (other) => network.truth(seed, network.place(other));
  const along = (cells, picture) => at.map((_, axis) => network.sumAlong(axis, cell, cells, picture));
  const plus = () => {
    const sums = along(network.everyCell, truthAt);
    return sums[0].map((_, d) => sums.reduce((sum, part) => sum + part[d], 0));
  };
  const known = network.rules.rules;
  return [
    { name: "what is asked", parts: () => [truth], about: "the true output" },
    { name: "superposition", parts: () => along(seen, drawnAt), about: "its own outputs for seen combinations that share a factor, added" },
    { name: "plus", parts: () => [plus()], about: "true outputs that share a factor, added" },
    { name: "nearest seen", parts: () => [network.predictor("nearest", seed, cell)], about: "the true output of the nearest seen combination" },
    { name: "local interpolator", parts: () => [network.predictor("interpolator", seed, cell)], about: "a smooth blend of seen outputs with similar codes" },
  ].filter(({ name }) => known.includes(name)).map((rule) => ({ ...rule, parts: rule.parts() }));
}

let rulesDue = 0;

// Outside the held-out region the cards are empty, and keep their room.
export function drawRules() {
  document.querySelectorAll(".one-seed").forEach((each) => { each.textContent = `seed ${network.seeds[one()]}`; });
  clearTimeout(rulesDue);
  rulesDue = setTimeout(() => {
    const here = network.cell(state.at), isAway = !network.held_out.values[here], cards = $("rule-cards");
    const cell = isAway ? network.heldOutOf.keys().next().value : here, seed = one();
    $("rules").hidden = cell === undefined;
    $("rules-away").hidden = !isAway;
    cards.classList.toggle("away", isAway);
    if (cell === undefined) return;
    const drawn = network.output(state.step, seed, network.place(cell));
    const card = (name, values, text, about) => {
      const options = { limits: brightened(values, network) };
      const canvas = make("canvas"), found = make("div", { className: "card output", title: about }, make("h3", { textContent: name }),
        canvas, make("p", { textContent: text }), make("p", { textContent: about }));
      drawOutput(canvas, values, network, options);
      found.dataset.rule = name;
      return found;
    };
    cards.replaceChildren(card(`seed ${network.seeds[seed]} draws`, drawn, "", "what the rules are to explain"),
      ...rules(cell, seed).map(({ name, parts, about }) => {
        const r2 = network.explained(state.step, seed, cell)[name];
        const picture = name === "superposition" || name === "plus" ? fitted(drawn, parts) : parts[0];
        const found = card(name, picture, `r² = ${r2.toFixed(2)}`, about);
        found.dataset.r2 = r2;
        return found;
      }));
  }, 40);
}

// The score along training, on shown and on never-shown combinations: mean and interval. The axis
// of an error is logarithmic, and reaches from the least of all seeds' means to the largest.
export function drawCourse() {
  const canvas = $("course"), context = canvas.getContext("2d"), dots = window.devicePixelRatio || 1;
  const width = canvas.clientWidth || 600, height = 120, name = state.score;
  Object.assign(canvas, { width: width * dots, height: height * dots });
  context.scale(dots, dots);
  const { hit } = network.scores[name], steps = network.steps;
  const regions = [0, 1].map((hidden) => network.everyCell.filter((cell) => network.held_out.values[cell] === hidden)).map((cells) =>
    (cells.length ? steps.map((_, step) => network.regionMeans(name, step, cells)) : []));
  const positive = regions.flat(2).filter((value) => value > 0);
  const ends = hit ? [0, 1] : [Math.min(...positive), Math.max(...positive)];
  const scale = (value) => (hit ? value : Math.log10(Math.max(value, ends[0])));
  const [low, high] = ends.map(scale);
  const x = (k) => 56 + (width - 76) * (steps.length > 1 ? k / (steps.length - 1) : 0.5);
  const y = (value) => height - 22 - (height - 34) * Math.min(Math.max((scale(value) - low) / (high - low || 1), 0), 1);
  context.fillStyle = color("faint");
  context.fillRect(x(state.step) - 0.75, 0, 1.5, height - 18);
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "right";
  ends.forEach((end) => {
    context.fillStyle = color("muted");
    context.fillText(hit ? `${100 * end}%` : short(end, 2), 46, y(end) + 4);
    context.fillStyle = color("faint");
    context.fillRect(50, y(end), width - 62, 0.5);
  });
  regions.forEach((values, hidden) => {
    if (!values.length) return;
    const band = values.map((ofSeeds) => interval(ofSeeds, network.t));
    context.fillStyle = context.strokeStyle = color(hidden ? "held-out" : "shown");
    context.lineWidth = 2.5;
    context.globalAlpha = 0.2;
    context.beginPath();
    band.forEach((one, k) => context.lineTo(x(k), y(one.low ?? one.mean)));
    band.map((one, k) => [one, k]).reverse().forEach(([one, k]) => context.lineTo(x(k), y(one.high ?? one.mean)));
    context.fill();
    context.globalAlpha = 1;
    context.beginPath();
    band.forEach((one, k) => context.lineTo(x(k), y(one.mean)));
    context.stroke();
    band.forEach((one, k) => context.fillRect(x(k) - 3, y(one.mean) - 3, 6, 6));
  });
  context.fillStyle = color("muted");
  context.textAlign = "center";
  const every = Math.ceil(36 * steps.length / (width - 76));
  steps.forEach((step, k) => (steps.length - 1 - k) % every || context.fillText(step, x(k), height - 5));
  $("course-name").textContent = hit ? "Share right, by training step:" : `Mean ${name} (log), by training step:`;
  canvas.ariaLabel = $("course-name").textContent;
  Object.assign(canvas.dataset, { low: ends[0], high: ends[1] });
}

export function drawPython() {
  const last = state.step === network.steps.length - 1, step = network.steps[state.step];
  const point = network.values(state.at).map((value) => Number(value.toPrecision(7))), lines = [
    "import compgen_jax as cg", "", `run = ${network.python}`,
    `point = [${point.join(", ")}]  # ${network.factors.join(", ")}`,
    "run.draw(*point)  # asked, drawn by every seed, and their difference",
    last ? "outputs = run.predict([point])  # one for every seed"
      : `outputs = run.finished.at(${step}).predict([point])  # after ${step} training steps`,
  ];
  if (state.seed >= 0) lines.push(`output = outputs[${network.seeds[state.seed] === state.seed ? state.seed : `run.config.training.seeds.index(${network.seeds[state.seed]})`}]  # of seed ${network.seeds[state.seed]}`);
  if (state.box && !network.points) {
    const limits = state.axes.map((axis, k) => {
      const { values } = network.axes[axis], name = JSON.stringify(network.factors[axis]);
      return `cells[${name}].between(${values[state.box[2 * k]]}, ${values[state.box[2 * k + 1]]})`;
    });
    lines.push("cells = run.cell_table()", `region = cells[${limits.join(" & ")}]`, `region.groupby("seed")[${JSON.stringify(state.score)}].mean()`);
  }
  const [, beside] = views();
  if (beside) {
    const values = beside.network.values(beside.at).map((value) => Number(value.toPrecision(7)));
    lines.push(`other = ${beside.network.python}`, `other.draw(${values.join(", ")})`);
  }
  $("python").textContent = lines.join("\n");
}
