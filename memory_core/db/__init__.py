"""The only builder of SQL."""
