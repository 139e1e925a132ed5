"""Alembic migrations, the oldest first."""
