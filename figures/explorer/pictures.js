// Canvases: outputs (images or curves), maps over two axes, ellipses.

const style = () => getComputedStyle(document.documentElement);
export const color = (name) => style().getPropertyValue(`--${name}`).trim();
const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
const mix = (a, b, share) => a.map((value, k) => value + share * (b[k] - value));

// 0 -> the first colour, 1 -> the last
export function makeScale(names) {
  const stops = names.map((name) => rgb(color(name)));
  return (share) => {
    const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    return mix(stops[low], stops[low + 1], place - low);
  };
}

// Pixels of any number; the page's style enlarges them without blurring.
function paint(canvas, width, height, colorAt) {
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d"), image = context.createImageData(width, height);
  for (let k = 0; k < width * height; k++) {
    const [red, green, blue] = colorAt(k);
    image.data.set([red, green, blue, 255], 4 * k);
  }
  context.putImageData(image, 0, 0);
}

// One output. `limits` {low, high}; `signed`: a difference, 0 in the middle.
export function drawOutput(canvas, values, network, { signed = false, beside = null, limits = network } = {}) {
  if (network.kind === "curve") return drawCurve(canvas, values, network, signed, beside);
  const [height, width] = network.shape, channels = network.kind === "rgb" ? 3 : 1;
  const reach = Math.max(Math.abs(limits.low), Math.abs(limits.high));
  const scale = makeScale(signed ? ["less", "paper", "more"] : ["paper", "ink"]);
  paint(canvas, width, height, (k) => {
    const rowIndex = Math.floor(k / width), column = k % width;
    const first = network.origin === "lower" ? height - 1 - rowIndex : rowIndex;
    const source = (first * width + column) * channels;
    const entry = values.slice(source, source + channels);
    if (signed) return scale((entry.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a)) / reach + 1) / 2);
    const shares = [...entry].map((value) => Math.min(Math.max((value - limits.low) / (limits.high - limits.low), 0), 1));
    return channels === 1 ? scale(shares[0]) : shares.map((share) => 255 * share);
  });
}

function drawCurve(canvas, values, { low, high }, signed, beside) {
  const [width, height] = [canvas.width, canvas.height] = [240, 240];
  const context = canvas.getContext("2d");
  const [least, most] = signed ? [low - high, high - low] : [low, high];
  const y = (value) => height - 8 - (height - 16) * (value - least) / (most - least || 1);
  const x = (k) => 8 + (width - 16) * (values.length > 1 ? k / (values.length - 1) : 0.5);
  const line = (points, stroke) => {
    context.strokeStyle = context.fillStyle = stroke;
    context.lineWidth = 3;
    context.beginPath();
    points.forEach((value, k) => k ? context.lineTo(x(k), y(value)) : context.moveTo(x(k), y(value)));
    context.stroke();
    if (points.length <= 16) points.forEach((value, k) => context.fillRect(x(k) - 4, y(value) - 4, 8, 8));
  };
  context.clearRect(0, 0, width, height);
  if (least < 0 && most > 0) line(values.map(() => 0), color("line"));
  if (beside) line(beside, color("faint"));
  line(values, color("ink"));
}

// A map of cells: values of a slice [row][column], rows upwards; `outline` marks held-out ones.
export function drawMap(canvas, slice, shareOf, scale, { room, outline }) {
  const rows = slice.length, columns = slice[0].length;
  const context = canvas.getContext("2d"), [wide, high] = cellSize(columns, rows, room);
  canvas.width = columns * wide;
  canvas.height = rows * high;
  slice.forEach((line, j) => line.forEach((index, i) => {
    context.fillStyle = `rgb(${scale(shareOf(index)).map(Math.round)})`;
    context.fillRect(i * wide, (rows - 1 - j) * high, wide, high);
  }));
  context.beginPath();
  const hidden = (j, i) => Boolean(slice[j]?.[i] !== undefined && outline[slice[j][i]]);
  for (let j = -1; j < rows; j++) {
    for (let i = -1; i < columns; i++) {
      const top = (rows - 1 - j) * high, right = (i + 1) * wide;
      if (i >= 0 && hidden(j, i) !== hidden(j + 1, i)) {
        context.moveTo(i * wide, inside(top, canvas.height));
        context.lineTo(right, inside(top, canvas.height));
      }
      if (j >= 0 && hidden(j, i) !== hidden(j, i + 1)) {
        context.moveTo(inside(right, canvas.width), top);
        context.lineTo(inside(right, canvas.width), top + high);
      }
    }
  }
  const width = room > 200 ? 3 : 2;
  for (const [name, wider] of [["card", 2], ["held-out", 0]]) {  // a halo sets it off from the cells
    context.strokeStyle = color(name);
    context.lineWidth = width + wider;
    context.stroke();
  }
}

// Whole pixels; a cell is at most three times as long as wide, unless it would be too thin to see,
// or on the page's own map to touch.
function cellSize(columns, rows, room) {
  const [wide, high] = [room / columns, room / rows], least = room > 200 ? 44 : 20;
  return [Math.min(wide, Math.max(3 * high, least)), Math.min(high, Math.max(3 * wide, least))]
    .map((size) => Math.max(1, Math.floor(size)));
}

const inside = (place, size) => Math.min(Math.max(place, 1.5), size - 1.5);

// An ellipse for each cell of a slice, long where the layer changes fastest: the square root of the
// metric [[a, b], [b, d]], which `metricAt(index)` gives.
export function drawEllipses(canvas, slice, metricAt, cell) {
  const rows = slice.length, columns = slice[0].length, context = canvas.getContext("2d");
  canvas.width = columns * cell;
  canvas.height = rows * cell;
  const shapes = slice.flatMap((line, j) => line.map((index, i) => {
    const [a, b, d] = metricAt(index);
    const middle = (a + d) / 2, apart = Math.hypot((a - d) / 2, b);
    const axes = [middle + apart, Math.max(middle - apart, 0)].map(Math.sqrt);
    return { i, j, axes, angle: Math.atan2(2 * b, a - d) / 2 };
  }));
  const lengths = shapes.map(({ axes }) => axes[0]).sort((a, b) => a - b);
  const longest = lengths[Math.floor(0.9 * lengths.length)] || 1;  // the largest few are cut off
  context.strokeStyle = color("text");
  context.lineWidth = 1.2;
  for (const { i, j, axes, angle } of shapes) {
    const [long, narrow] = axes.map((length) => 0.48 * cell * Math.min(length / longest, 1));
    context.beginPath();
    context.ellipse((i + 0.5) * cell, (rows - j - 0.5) * cell, Math.max(long, 0.5), Math.max(narrow, 0.3), -angle, 0, 7);
    context.stroke();
  }
}
