"""The parts of the page of the tool-calling suites."""
