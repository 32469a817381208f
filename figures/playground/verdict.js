// How many of the seeds are right on what was held out.

export const RIGHT = 0.9;  // of the held-out combinations

// the share of hits among the cells that are held out, or are not
export function shareRight(rendered, heldOut, isHeldOut) {
  let hits = 0, count = 0;
  rendered.forEach((hit, cell) => {
    if (Boolean(heldOut[cell]) !== isHeldOut) return;
    hits += hit;
    count += 1;
  });
  return hits / count;
}

// Clopper and Pearson's 95% interval of a share, of `hits` in `count`.
export function exactInterval(hits, count) {
  const atMost = (k, share) => {
    let term = (1 - share) ** count, sum = 0;
    for (let j = 0; j <= k; j++) {
      sum += term;
      term *= ((count - j) / (j + 1)) * (share / (1 - share));
    }
    return sum;
  };
  const solve = (isBelow) => {
    let [low, high] = [0, 1];
    for (let k = 0; k < 60; k++) isBelow((low + high) / 2) ? (low = (low + high) / 2) : (high = (low + high) / 2);
    return low;
  };
  return [
    hits === 0 ? 0 : solve((share) => 1 - atMost(hits - 1, share) < 0.025),
    hits === count ? 1 : solve((share) => atMost(hits, share) > 0.025),
  ];
}

// What a finished page says, of each seed's share right on held-out and on seen combinations.
export function verdictOf(ood, id, baseline) {
  const count = ood.length, hits = ood.filter((share) => share > RIGHT).length;
  const learnt = id.filter((share) => share > RIGHT).length;
  const [low, high] = exactInterval(hits, count).map((share) => Math.round(100 * share));
  const percent = (share) => `${Math.round(100 * share)}%`;
  const mean = ood.reduce((a, b) => a + b, 0) / count;
  const words = [
    `${hits} of ${count} networks are right on the held-out combinations (more than 9 of 10; 95% interval ${low}% to ${high}%).`,
    `On average they render ${percent(mean)} of them; kernel ridge regression, which learns no features, ${percent(baseline)}.`,
  ];
  if (learnt < count) words.push(`${count - learnt} did not learn the training set to the end.`);
  return words.join(" ");
}
