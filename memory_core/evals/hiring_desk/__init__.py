"""A hiring desk that was made up, as memories in the import format with questions that name their evidence."""
