"""The papers: their runs, claims, known answers and what RESULTS.md says of them; all figures."""
