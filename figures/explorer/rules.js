// Simple rules that may draw the same, the course of training, and the same view in Python.

import { fitted, interval, short } from "numbers";
import { color, drawOutput } from "pictures";
import { $, make, network, one, state } from "main";
import { brightened, placeName } from "views";

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

export function drawRules() {
  document.querySelectorAll(".one-seed").forEach((each) => { each.textContent = `seed ${network.seeds[one()]}`; });
  clearTimeout(rulesDue);
  rulesDue = setTimeout(() => {
    const cell = network.cell(state.at), seed = one(), drawn = network.output(state.step, seed, network.place(cell));
    if (!network.held_out.values[cell]) {
      $("rule-cards").textContent = "This combination lies outside the held-out region: choose one inside the outline.";
      return;
    }
    const card = (name, values, text, about) => {
      const options = { limits: brightened(values) };
      const canvas = make("canvas"), found = make("div", { className: "card output", title: about }, make("h3", { textContent: name }),
        canvas, make("p", { textContent: text }), make("p", { textContent: about }));
      drawOutput(canvas, values, network, options);
      found.dataset.rule = name;
      return found;
    };
    $("rule-cards").replaceChildren(card(`seed ${network.seeds[seed]} draws`, drawn, "", placeName(network.place(cell))),
      ...rules(cell, seed).map(({ name, parts, about }) => {
        const r2 = network.explained(state.step, seed, cell)[name];
        const picture = name === "superposition" || name === "plus" ? fitted(drawn, parts) : parts[0];
        const found = card(name, picture, `r² = ${r2.toFixed(2)}`, about);
        found.dataset.r2 = r2;
        return found;
      }));
  }, 40);
}

// The score along training, on shown and on never-shown combinations: mean and interval.
export function drawCourse() {
  const canvas = $("course"), context = canvas.getContext("2d"), { width, height } = canvas;
  const { hit } = network.scores[state.score], steps = network.steps;
  const bands = [0, 1].map((hidden) => {
    const cells = network.everyCell.filter((cell) => network.held_out.values[cell] === hidden);
    return cells.length ? steps.map((_, step) => interval(network.regionMeans(state.score, step, cells), network.t)) : [];
  });
  const every = bands.flat().map((one) => one.mean);
  const scale = hit ? (value) => value : (value) => Math.log(Math.max(value, 1e-12));
  const low = hit ? 0 : scale(Math.min(...every)), high = hit ? 1 : scale(Math.max(...every));
  const x = (k) => 52 + (width - 72) * (steps.length > 1 ? k / (steps.length - 1) : 0.5);
  const y = (value) => height - 20 - (height - 34) * Math.min(Math.max((scale(value) - low) / (high - low || 1), 0), 1);
  context.clearRect(0, 0, width, height);
  context.fillStyle = color("faint");
  context.fillRect(x(state.step) - 0.75, 0, 1.5, height - 16);
  const ends = hit ? [[0, "0%"], [1, "100%"]] : [Math.min(...every), Math.max(...every)].map((end) => [end, short(end, 2)]);
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "right";
  ends.forEach(([end, label]) => {
    context.fillStyle = color("muted");
    context.fillText(label, 40, y(end) + 4);
    context.fillStyle = color("faint");
    context.fillRect(44, y(end), width - 56, 0.5);
  });
  bands.forEach((band, hidden) => {
    if (!band.length) return;
    context.fillStyle = context.strokeStyle = color(hidden ? "wrong" : "accent");
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
  steps.forEach((step, k) => context.fillText(step, x(k), height - 4));
  $("course-name").textContent = hit ? "Share right, by training step:" : `Mean ${state.score} (log), by training step:`;
  canvas.ariaLabel = $("course-name").textContent;
}

export function drawPython() {
  const last = state.step === network.steps.length - 1, step = network.steps[state.step];
  const point = network.values(state.at).map((value) => Number(value.toPrecision(7))), lines = [
    "import compgen_jax as cg", "", `run = cg.load(${JSON.stringify(network.path)})`,
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
    lines.push("cells = run.cells", `region = cells[${limits.join(" & ")}]`, `region.groupby("seed")[${JSON.stringify(state.score)}].mean()`);
  }
  $("python").textContent = lines.join("\n");
}
