// Guess first: the reader says where a network will draw, and then sees it.

import { $, change, network, randomCell, scoreOf, state } from "main";

const tally = { right: 0, tries: 0 };
const LEAST = 0.5;  // of a drawing's brightest pixel
const FAINT = 0.05;  // of the brightest of all drawings: a drawing below it is empty

export const press = () => (matchMedia("(pointer: coarse)").matches ? "Tap" : "Click");
export const isPending = () => Boolean(state.guess && !state.guess.place);

// Asks for a combination that training never showed.
export function startGuessing() {
  change({ at: network.place(randomCell()), guess: {} });
}

// The guess that a click in a picture makes: shares of its width and height, from the left and from
// the top. A key has no place and stands for the middle.
export function guess(event, picture) {
  const { left, top, width, height } = picture.getBoundingClientRect();
  const place = event.detail ? [(event.clientX - left) / width, (event.clientY - top) / height] : [0.5, 0.5];
  tally.tries += 1;
  tally.right += 2 * seedsThere(place) >= network.seeds.length ? 1 : 0;
  change({ guess: { place } });
}

// How many seeds draw at a place, or within about a sixteenth of the picture.
function seedsThere(place) {
  const [height, width] = network.shape, channels = network.shape[2] ?? 1, near = Math.max(1, Math.round(width / 16));
  const [column, row] = [place[0] * width, place[1] * height].map(Math.floor);
  const line = network.origin === "lower" ? height - 1 - row : row;
  return network.seeds.filter((_, seed) => {
    const drawn = network.output(state.step, seed, state.at), brightest = Math.max(...drawn) - network.low;
    const there = drawn.filter((_, k) => {
      const pixel = Math.floor(k / channels), [y, x] = [Math.floor(pixel / width), pixel % width];
      return Math.abs(y - line) <= near && Math.abs(x - column) <= near;
    });
    return brightest > FAINT * (network.high - network.low) && Math.max(...there) - network.low >= LEAST * brightest;
  }).length;
}

export function drawGuess() {
  document.body.classList.toggle("guessing", Boolean(state.guess));
  document.body.classList.toggle("pending", isPending());
  $("guess-bar").hidden = !state.guess;
  if (!state.guess) return;
  $("guess-words").textContent = isPending() ? `Where will the seeds draw? ${press()} in an empty picture.` : outcome();
}

function outcome() {
  const seeds = network.seeds.length, score = scoreOf(network), { hit } = network.scores[score];
  const hits = network.seeds.filter((_, seed) => network.score(score, state.step, seed)[network.cell(state.at)] === 1).length;
  const right = hit ? `; ${hits} draw what was asked` : "";
  return `${seedsThere(state.guess.place)} of ${seeds} seeds draw there${right}. Your score: ${tally.right} of ${tally.tries}.`;
}
