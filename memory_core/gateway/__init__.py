"""The gateway to a chat model: asked within a deadline, answered in pieces, every call on record."""
