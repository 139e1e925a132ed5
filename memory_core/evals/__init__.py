"""Measures how well the store and the agents do their work."""
