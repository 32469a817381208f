// What a visitor chooses, as the fields of `compgen_jax.config` that it stands for.

import { cellsOf, singleFactor } from "bumps";
import { generator, shuffled } from "decoders";

export const SEEDS = 8;

const MLP = { "model.name": "pixelwise", "model.width": 32, "model.depth": 3 };
const LOW_RANK = { "model.name": "lowrank", "model.width": 2, "model.depth": 2 };
const penalties = (entropy, variance) => ({ "model.penalty.entropy": entropy, "model.penalty.variance": variance });
export const DECODERS = {
  cnn: { label: "CNN", fields: { "model.name": "conv", "model.width": 16, "model.depth": 2 } },
  untied: { label: "coordinate MLP, untied input weights", fields: { ...MLP, "model.shared": false } },
  tied: { label: "coordinate MLP, tied input weights", fields: { ...MLP, "model.shared": true } },
  lowrank: { label: "low rank, with penalties", fields: { ...LOW_RANK, ...penalties(1, 0.075) } },
  plain: { label: "low rank, without penalties", fields: { ...LOW_RANK, ...penalties(0, 0) } },
};
export const CODES = { bump: "bump", ramp: "ramp", onehot: "one-hot" };
export const ALSO_SHOWN = { nothing: "nothing", single: "single-factor images" };
export const GRIDS = [12, 16];

const isLowRank = ({ decoder }) => "model.penalty.entropy" in DECODERS[decoder].fields;
// An embedding has a term for each value of a factor, so that its code is one-hot.
export const codesFor = (choice) => (isLowRank(choice) ? ["onehot"] : Object.keys(CODES));

// choice: {grid, decoder, code, also, heldOut (cells, 0 or 1)} -> {field: value}
export function fieldsOf(choice) {
  const { grid, decoder, code, also, heldOut } = choice, isSingle = also === "single";
  const isMlp = DECODERS[decoder].fields["model.name"] === "pixelwise";
  let [steps, rate, decay] = isMlp ? [1200, 5e-3, 0.01] : [1500, 3e-3, 0.01];
  if (isLowRank(choice)) [steps, rate, decay] = [4000, 2e-3, 1e-4];
  if (code === "ramp") steps *= 2;  // it is learnt more slowly
  return {
    "task.grid": grid,
    "task.image.polarity": "upright",
    "task.code.name": code,
    ...(code === "ramp" && isSingle ? { "task.code.missing": "off_grid" } : {}),
    "task.support.held_out": sentenceOf(heldOut, grid),
    "task.support.sampling": "every_cell",
    "task.support.require_marginals": false,
    "task.stripes.copies": Number(isSingle),
    ...DECODERS[decoder].fields,
    "training.steps": steps,
    "training.batch_size": isLowRank(choice) ? 16 : 8,
    "training.learning_rate": rate,
    "training.weight_decay": decay,
    "training.evaluate_every": steps / 4,
  };
}

// What a worker trains.
export function runOf(choice) {
  const fields = fieldsOf(choice), { grid, code, heldOut } = choice, model = { penalty: {} };
  for (const [name, value] of Object.entries(fields)) {
    const [group, field, inner] = name.split(".");
    if (group === "model" && inner) model[field][inner] = value;
    else if (group === "model") model[field] = value;
  }
  const seen = cellsOf(grid).filter((_, cell) => !heldOut[cell]);
  return {
    grid, code, heldOut, model,
    points: fields["task.stripes.copies"] ? [...singleFactor(grid), ...seen] : seen,
    steps: fields["training.steps"], batch: fields["training.batch_size"],
    rate: fields["training.learning_rate"], decay: fields["training.weight_decay"],
  };
}

export function pythonOf(choice) {
  const seeds = `    "training.seeds": (${[...Array(SEEDS).keys()].join(", ")}),`;
  const text = (value) => (typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value));
  const lines = Object.entries(fieldsOf(choice)).map(([name, value]) => `    ${JSON.stringify(name)}: ${text(value)},`);
  return `import compgen_jax as cg

settings = {
${[...lines, seeds].join("\n")}
}
run = cg.train("bump_cnn_quick", "runs/playground", settings)
print(run.cell_table().groupby(["held_out", "seed"])["rendered"].mean())
`;
}

// --- held-out regions -----------------------------------------------------------------------

export const REGIONS = {
  square: (grid) => mask(grid, (x, y) => inMiddle(x, grid) && inMiddle(y, grid)),
  corner: (grid) => mask(grid, (x, y) => x >= grid / 2 && y >= grid / 2),
  random(grid) {
    const heldOut = new Uint8Array(grid * grid);
    shuffled(grid * grid, generator(0)).slice(0, grid * grid / 4).forEach((cell) => { heldOut[cell] = 1; });
    return heldOut;
  },
  cross: (grid) => mask(grid, (x, y) => (atCentre(x, grid) || atCentre(y, grid)) && inMiddle(x, grid) && inMiddle(y, grid)),
};

const inMiddle = (value, grid) => value >= grid / 4 && value < 3 * grid / 4;
const atCentre = (value, grid) => Math.abs(value - (grid - 1) / 2) < 1;
const mask = (grid, isHeldOut) => Uint8Array.from(cellsOf(grid), ([x, y]) => Number(isHeldOut(x, y)));

// '3 <= x <= 8 and 3 <= y <= 8': the region as a sentence; rows that hold out the same columns are
// said together.
export function sentenceOf(heldOut, grid) {
  const rowsOf = new Map();
  for (let y = 0; y < grid; y++) {
    const columns = [...Array(grid).keys()].filter((x) => heldOut[y * grid + x]);
    if (columns.length) rowsOf.set(values("x", columns), [...(rowsOf.get(values("x", columns)) ?? []), y]);
  }
  const parts = [...rowsOf].map(([columns, rows]) => `${columns} and ${values("y", rows)}`);
  return parts.length === 1 ? parts[0] : parts.map((part) => `(${part})`).join(" or ");
}

function values(name, places) {
  const [first, last] = [places[0], places.at(-1)];
  if (places.length === 1) return `${name} == ${first}`;
  return places.length === last - first + 1 ? `${first} <= ${name} <= ${last}` : `${name} in (${places.join(", ")})`;
}
