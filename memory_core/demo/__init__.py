"""A made-up organisation with enough memories to look around in."""

from memory_core.demo.letters import DemoLetter, demo_letters
from memory_core.demo.organisation import DemoErasure, DemoMemory, demo_erasures, demo_memories

__all__ = ["DemoErasure", "DemoLetter", "DemoMemory", "demo_erasures", "demo_letters", "demo_memories"]
