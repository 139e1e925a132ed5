"""The parts of the data protection officer's pages."""
