"""Agents: their specifications, the tools they may call, the loop that runs one."""
