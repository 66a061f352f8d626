"""From the types of answers to JSON schemas.

Laws:
- A named type becomes a component of the same name, and is referred to; a page of something is written where it stands.
- Whatever a type cannot say in a schema is an error here, never a schema that allows everything by accident.
"""

from __future__ import annotations

import types
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

Schema = dict[str, Any]

_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}


class Shapes:
    """`components` are all that were met so far."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}

    def of(self, kind: Any) -> Schema:
        """The schema of a type, or a reference to it."""
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
        if is_typeddict(kind):
            if kind.__name__ not in self.components:
                # Before its fields: a type may hold itself.
                self.components[kind.__name__] = {}
                self.components[kind.__name__] = self._object(kind)
            return {"$ref": f"#/components/schemas/{kind.__name__}"}
        origin, arguments = get_origin(kind), get_args(kind)
        if is_typeddict(origin):
            return self._object(kind)
        if origin is Annotated:
            return self._annotated(*arguments)
        if origin is Literal:
            return {"type": "string", "enum": list(arguments)}
        if origin in (Union, types.UnionType):
            return self._either(arguments)
        if origin is list:
            return {"type": "array", "items": self.of(arguments[0])}
        if origin is dict and arguments[0] is str:
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        raise TypeError(f"no schema for {kind}")

    def _annotated(self, kind: Any, said: Any) -> Schema:
        """A text of a format, or one of a closed vocabulary."""
        extra = {"format": said} if isinstance(said, str) else {"enum": [str(word) for word in said]}
        return {**self.of(kind), **extra}

    def _either(self, kinds: tuple[Any, ...]) -> Schema:
        found = [self.of(kind) for kind in kinds]
        if len(found) == 2 and {"type": "null"} in found:
            (other,) = (schema for schema in found if schema != {"type": "null"})
            if "type" in other and "enum" not in other:
                return {**other, "type": [other["type"], "null"]}
        return {"anyOf": found}

    def _object(self, kind: Any) -> Schema:
        fields = _fields(kind)
        required = [name for name, field in fields.items() if get_origin(field) is not NotRequired]
        shape: Schema = {
            "type": "object",
            "properties": {name: self.of(_bare(field)) for name, field in fields.items()},
            "required": required,
        }
        own = (get_origin(kind) or kind).__dict__.get("__doc__")
        if own:
            shape["description"] = " ".join(own.split())
        return shape


def _bare(field: Any) -> Any:
    return get_args(field)[0] if get_origin(field) is NotRequired else field


def _fields(kind: Any) -> dict[str, Any]:
    """With what is inherited; of a page of something, of that."""
    origin = get_origin(kind) or kind
    fields = get_type_hints(origin, include_extras=True)
    meant = dict(zip(getattr(origin, "__parameters__", ()), get_args(kind), strict=False))
    for base in getattr(origin, "__orig_bases__", ()):
        if is_typeddict(get_origin(base)):
            meant |= dict(zip(get_origin(base).__parameters__, get_args(base), strict=True))
    return {name: _filled(field, meant) for name, field in fields.items()}


def _filled(field: Any, meant: dict[Any, Any]) -> Any:
    if isinstance(field, TypeVar):
        return meant[field]
    parameters = getattr(field, "__parameters__", ())
    return field[tuple(meant[each] for each in parameters)] if parameters else field
