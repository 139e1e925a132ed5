"""A made-up organisation with enough memories to look around in."""

from memory_core.demo.organisation import DemoErasure, DemoMemory, demo_erasures, demo_memories

__all__ = ["DemoErasure", "DemoMemory", "demo_erasures", "demo_memories"]
