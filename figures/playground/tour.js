// Six steps through the papers' first claims: each sets the page, and asks for a guess before it trains.

import { RIGHT } from "verdict";

export const GUESSES = { none: "at most 1 of 8", some: "2 to 6", all: "7 or 8" };

export const STEPS = [
  {
    title: "Random positions",
    words: "A quarter of all positions is held out at random; each has neighbours in training. Of eight CNNs, how many draw nearly all of these right?",
    choice: { region: "random", decoder: "cnn", code: "bump", also: "nothing" },
    after: "Held out at random, positions are easy: kernel ridge regression, which averages neighbours, is right too.",
  },
  {
    title: "A held-out block",
    words: "Now a whole block is held out. Every column and every row in it occurs in training, but never together. How many networks combine them?",
    choice: { region: "square", decoder: "cnn", code: "bump", also: "nothing" },
    after: "This is the first paper's finding: decoders of perfectly disentangled inputs fail where factors must be recombined.",
  },
  {
    title: "Single-factor images",
    words: "First remedy: training also shows each column and each row alone, as a stripe. The block stays held out. How many networks fill it now?",
    choice: { region: "square", decoder: "cnn", code: "bump", also: "single" },
    after: "Images that show one factor alone teach a network to draw it without the other.",
  },
  {
    title: "Low rank, with penalties",
    words: "Second remedy: an embedding of low rank for each factor, with penalties on its entropy and variance. No stripes. How many networks are right?",
    choice: { region: "square", decoder: "lowrank", code: "onehot", also: "nothing" },
    after: "The penalties force each factor to be drawn apart, as rows and columns of the image, before the network combines them.",
  },
  {
    title: "Tied input weights",
    words: "A coordinate MLP draws each pixel by itself. If all pixels read x and y by the same weights, how many networks fill the block?",
    choice: { region: "square", decoder: "tied", code: "bump", also: "nothing" },
    after: "Sharing the input weights alone is enough here. Untie them in the list of decoders, and train again.",
  },
  {
    title: "Draw your own",
    words: "Draw a region with the mouse, a thumb or the keyboard, choose a decoder, and guess. Where does it begin to fail?",
    choice: {},
    after: "Copy as Python trains the same networks with the library.",
  },
];

export function guessOf(ood) {
  const hits = ood.filter((share) => share > RIGHT).length;
  return hits <= 1 ? "none" : hits >= 7 ? "all" : "some";
}
