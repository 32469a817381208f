// The first paper's task on an N x N grid: codes of x and y, and the bump at (x, y), upright, with a
// standard deviation of a pixel. Cell y N + x is the combination (x, y); NaN is a missing factor.

const LEAST_R2 = 0.75, LEAST_GAIN = 0.5, MOST_GAIN = 2;  // as in tasks/images.py

export function cellsOf(grid) {
  return Array.from({ length: grid * grid }, (_, cell) => [cell % grid, Math.floor(cell / grid)]);
}

// the 2N images that show one factor alone
export function singleFactor(grid) {
  const values = [...Array(grid).keys()];
  return [...values.map((x) => [x, NaN]), ...values.map((y) => [NaN, y])];
}

const profile = (value, grid) => Float32Array.from({ length: grid }, (_, i) => Math.exp(-((i - value) ** 2) / 2));

const CODES = {
  bump: profile,
  onehot: (value, grid) => Float32Array.from({ length: grid }, (_, i) => Number(i === value)),
  ramp: (value) => Float32Array.of(value),
};
// of the ramp a missing factor is -1, as 0 is a value
const ABSENT = { bump: (grid) => new Float32Array(grid), onehot: (grid) => new Float32Array(grid), ramp: () => Float32Array.of(-1) };

export const codeSize = (grid, code) => 2 * ABSENT[code](grid).length;

export function codeOf(point, grid, code) {
  const parts = point.map((value) => (Number.isNaN(value) ? ABSENT[code](grid) : CODES[code](value, grid)));
  return Float32Array.from([...parts[0], ...parts[1]]);
}

export function imageOf([x, y], grid) {
  const along = (value) => (Number.isNaN(value) ? new Float32Array(grid).fill(1) : profile(value, grid));
  const row = along(x), column = along(y), image = new Float32Array(grid * grid);
  for (let k = 0; k < image.length; k++) image[k] = column[Math.floor(k / grid)] * row[k % grid];
  return image;
}

// the rows of points, one after the other
export function table(points, grid, rowOf) {
  const rows = points.map((point) => rowOf(point, grid)), each = rows[0].length;
  const values = new Float32Array(rows.length * each);
  rows.forEach((row, k) => values.set(row, k * each));
  return values;
}

// For every cell the nearest one that is not held out, the first of equals; itself if it is seen.
export function nearestSeen(heldOut, grid) {
  const cells = cellsOf(grid);
  return cells.map(([x, y], cell) => {
    let best = -1, least = Infinity;
    if (!heldOut[cell]) return cell;
    cells.forEach(([u, v], other) => {
      const apart = (x - u) ** 2 + (y - v) ** 2;
      if (!heldOut[other] && apart < least) [best, least] = [other, apart];
    });
    return best;
  });
}

function covariance(a, b) {
  let meanA = 0, meanB = 0, sum = 0;
  for (let k = 0; k < a.length; k++) { meanA += a[k] / a.length; meanB += b[k] / a.length; }
  for (let k = 0; k < a.length; k++) sum += (a[k] - meanA) * (b[k] - meanB);
  return sum / a.length;
}

// Whether an output shows the truth (`images.rendered`); `nearest`: the image of the nearest seen
// cell, or null where the cell is seen itself.
export function isRendered(output, truth, nearest) {
  const shared = covariance(output, truth), own = covariance(output, output), ofTruth = covariance(truth, truth);
  const gain = shared / ofTruth;
  const alike = shared > 0 && shared ** 2 >= LEAST_R2 * own * ofTruth && gain >= LEAST_GAIN && gain <= MOST_GAIN;
  if (!alike || !nearest) return alike;
  const ofNearest = covariance(nearest, nearest);
  return ofNearest === 0 || shared * Math.sqrt(ofNearest) > covariance(output, nearest) * Math.sqrt(ofTruth);
}

// {errors, rendered}: of the outputs at all cells, one after the other
export function scoresOf(outputs, grid, heldOut) {
  const cells = cellsOf(grid), images = cells.map((cell) => imageOf(cell, grid)), nearest = nearestSeen(heldOut, grid);
  const errors = new Float32Array(cells.length), rendered = new Uint8Array(cells.length), size = grid * grid;
  cells.forEach((_, cell) => {
    const output = outputs.subarray(cell * size, (cell + 1) * size);
    let error = 0;
    for (let k = 0; k < size; k++) error += (output[k] - images[cell][k]) ** 2 / size;
    errors[cell] = error;
    rendered[cell] = isRendered(output, images[cell], heldOut[cell] ? images[nearest[cell]] : null);
  });
  return { errors, rendered };
}

// --- kernel ridge regression, as `baselines.interpolate` has it ---------------------------------

const LENGTHS = [0.5, 0.75, 1, 1.5, 2, 3, 5, 8];  // in median nearest-neighbour distances of the codes
const RIDGE = 1e-6, TIED = 1e-9;

// Outputs at all codes (B rows) of a fit to the shown ones (S rows, each another code); plain arrays.
export function kernelRegression(shown, images, codes) {
  const count = shown.length, size = images[0].length;
  const mean = Float64Array.from({ length: size }, (_, p) => images.reduce((sum, image) => sum + image[p], 0) / count);
  const centred = images.map((image) => Float64Array.from(image, (value, p) => value - mean[p]));
  const apart = shown.map((a) => shown.map((b) => squaredDistance(a, b)));
  const neighbours = apart.map((row, i) => Math.sqrt(Math.min(...row.filter((_, j) => j !== i)))).sort((a, b) => a - b);
  const middle = count >> 1, neighbour = count % 2 ? neighbours[middle] : (neighbours[middle - 1] + neighbours[middle]) / 2;
  const fits = LENGTHS.map((length) => {
    const scale = 2 * (length * neighbour) ** 2;
    const inverse = inverted(apart.map((row, i) => Float64Array.from(row, (square, j) => Math.exp(-square / scale) + (i === j ? RIDGE : 0))));
    const weights = inverse.map((row) => combination(row, centred));
    let error = 0;
    weights.forEach((row, s) => {
      // without a point the mean, which is fitted too, moves away by output / (S - 1)
      const moved = inverse[s].reduce((a, b) => a + b, 0) / (count - 1);
      row.forEach((weight, p) => { error += ((weight + moved * centred[s][p]) / inverse[s][s]) ** 2 / (count * size); });
    });
    return { error, scale, weights };
  });
  const power = centred.reduce((sum, row) => sum + row.reduce((a, b) => a + b * b, 0), 0) / (count * size);
  const limit = Math.min(...fits.map(({ error }) => error)) + TIED * power;
  const { scale, weights } = fits.find(({ error }) => error <= limit);
  const outputs = new Float32Array(codes.length * size);
  codes.forEach((code, b) => {
    const row = combination(shown.map((other) => Math.exp(-squaredDistance(code, other) / scale)), weights);
    for (let p = 0; p < size; p++) outputs[b * size + p] = row[p] + mean[p];
  });
  return outputs;
}

const squaredDistance = (a, b) => a.reduce((sum, value, k) => sum + (value - b[k]) ** 2, 0);

function combination(weights, rows) {
  const sum = new Float64Array(rows[0].length);
  weights.forEach((weight, s) => { for (let p = 0; p < sum.length; p++) sum[p] += weight * rows[s][p]; });
  return sum;
}

// The inverse of a symmetric positive matrix, by Gauss and Jordan.
function inverted(matrix) {
  const n = matrix.length;
  const rows = matrix.map((row, i) => Float64Array.from({ length: 2 * n }, (_, j) => (j < n ? row[j] : Number(j === n + i))));
  for (let i = 0; i < n; i++) {
    const pivot = rows[i][i];
    for (let j = i; j < 2 * n; j++) rows[i][j] /= pivot;
    for (let k = 0; k < n; k++) {
      const factor = rows[k][i];
      if (k === i || factor === 0) continue;
      for (let j = i; j < 2 * n; j++) rows[k][j] -= factor * rows[i][j];
    }
  }
  return rows.map((row) => row.slice(n));
}
