"""The text a model sees."""
