"""The parts of the page of runs: finding one, and reading one whole."""
