"""The embedded PostgreSQL, shared by the processes of one machine."""

from memory_core.db.embedded.cluster import Cluster, start, stop

__all__ = ["Cluster", "start", "stop"]
