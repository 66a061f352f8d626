from dataclasses import dataclass
@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    rule: str
    what: str
    rows: tuple[object, ...] = ()
def check(store, witness):
    return [Violation(rule="driver", what=c) for c in witness.complaints]
