// Means with intervals, least squares, and numbers in words.

export function mean(values) {
  return values.reduce((a, b) => a + b, 0) / values.length;
}

// Student's t interval of the mean over seeds; `t` is its quantile, null for a single seed.
export function interval(values, t) {
  const centre = mean(values);
  if (t === null) return { mean: centre, low: null, high: null };
  const squares = values.reduce((sum, value) => sum + (value - centre) ** 2, 0);
  const half = t * Math.sqrt(squares / (values.length - 1) / values.length);
  return { mean: centre, low: centre - half, high: centre + half };
}

// The weights of `parts` whose sum is nearest to `picture`; a part that adds nothing has 0.
function leastSquares(picture, parts) {
  const dot = (a, b) => a.reduce((sum, value, k) => sum + value * b[k], 0);
  const rows = parts.map((part) => [...parts.map((other) => dot(part, other)), dot(part, picture)]);
  const least = 1e-10 * Math.max(...rows.map((row, k) => row[k]));
  rows.forEach((pivot, k) => {
    if (!(pivot[k] > least)) return pivot.fill(0);
    const scale = pivot[k];
    pivot.forEach((value, j) => { pivot[j] = value / scale; });
    rows.forEach((row, other) => {
      const times = row[k];
      if (other !== k) row.forEach((value, j) => { row[j] = value - times * pivot[j]; });
    });
  });
  return rows.map((row) => row.at(-1));
}

// The sum of parts that is nearest to `picture`.
export function fitted(picture, parts) {
  const weights = leastSquares(picture, parts);
  return picture.map((_, d) => parts.reduce((sum, part, k) => sum + weights[k] * part[d], 0));
}

export function short(value, digits = 3) {
  if (value === null || !Number.isFinite(value)) return "–";
  const text = Math.abs(value) >= 1e-3 && Math.abs(value) < 1e5 || value === 0
    ? String(Number(value.toPrecision(digits))) : value.toExponential(1);
  return text.replace("-", "−");
}

// 0.061 of a score of hits is 6%, of others the number itself
export function worded(value, hit) {
  if (!hit || value === null) return short(value);
  return `${Math.round(100 * value)}%`;
}

export function withInterval({ mean, low, high }, hit, level, seeds) {
  const over = `${seeds} seed${seeds === 1 ? "" : "s"}`;
  if (low === null) return `${worded(mean, hit)} (${over}: no interval)`;
  const [from, to] = hit ? [Math.max(low, 0), Math.min(high, 1)] : [low, high];
  return `${worded(mean, hit)} (${100 * level}% interval ${worded(from, hit)} to ${worded(to, hit)}, ${over})`;
}
