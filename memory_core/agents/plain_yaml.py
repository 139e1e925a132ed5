"""YAML of plain values, as specifications and suites are written in it."""

from __future__ import annotations

from typing import Any

import yaml

from memory_core.errors import Refusal, Refused


class _Loader(yaml.SafeLoader):
    """Reads plain values, and refuses a name that is given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [name for place, name in enumerate(names) if name in names[:place]]
        if twice:
            mark = next(
                key.start_mark for key, _ in reversed(node.value) if self.construct_object(key, deep=True) == twice[0]
            )
            raise yaml.constructor.ConstructorError(None, None, f"{twice[0]} is given twice", mark)
        return dict(super().construct_mapping(node, deep))


def read_yaml(text: str, *, where: str, first_line: int = 1) -> Any:
    """Read YAML of plain values; raises `Refused` saying where, on which line, and what is wrong."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506  (a SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, LookupError, AttributeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + first_line}: " if mark else ""
        reason = f"{line}{getattr(error, 'problem', None) or 'is no YAML'}"
        raise Refused(Refusal(rule="file_is_yaml", field=where, reason=reason)) from None
