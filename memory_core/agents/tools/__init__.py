"""The tools that agents may call, by what they are about."""
