"""What this engine knows to be secret, taken out of a text that is kept or told.

Laws:
- Secret are the values of SECRETS, of ENV names that sound like one and of the secrets of webhooks, of every agent that
  was declared since we began; the operator's token and the one that is given to peers; and the token of any run.
- They are looked for in the same forms as in what a run prints (see `redaction`).
- Nothing is kept from one text to the next: any thread may ask.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterator, Mapping

from wakeful.core.agents import Agent
from wakeful.core.errors import Mistake
from wakeful.core.hooks import is_hook, read_hook
from wakeful.core.peers import peer_token
from wakeful.runners.environment import secret_values
from wakeful.runners.redaction import MARK, Redactor

_RUN, _RUN_TOKEN = "run.", re.compile(r"run\.[0-9]+\.[0-9]+\.(?:[0-9]+\.)?[0-9a-f]{64}")
_MARK = MARK.decode()
# How much of a digest tells two names apart.
_DIGITS = 12


class Hiding:
    def __init__(
        self,
        agents: Callable[[], tuple[Agent, ...]],
        variables: Mapping[str, str],
        token: Callable[[], str] = str,
        *,
        key: bytes = b"",
    ) -> None:
        """`agents` are those of the fleet as it stands, `token` gives the operator's; `key` is ours alone."""
        self._agents, self._variables, self._token, self._key = agents, variables, token, key
        self._known: tuple[tuple[Agent, ...] | None, str] = (None, "")
        # What was a secret once is not told when an edit takes it away.
        self._values: dict[str, None] = {}
        self._redactor = Redactor(())

    def __call__(self, text: str) -> str:
        """The very same text where there is nothing to hide."""
        hidden = _RUN_TOKEN.sub(_MARK, text) if _RUN in text else text
        written = hidden.encode("utf-8", "surrogatepass")
        found = self._current().whole(written)
        return hidden if found is written else found.decode("utf-8", "surrogatepass")

    def name(self, text: str) -> str:
        """Of what is known by its name: two that differ by a secret alone are still two, today and tomorrow."""
        hidden = self(text)
        if hidden == text:
            return text
        digest = hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
        return f"{hidden}#{digest[:_DIGITS]}"

    def values(self) -> tuple[str, ...]:
        """All of them but the tokens of runs, for whoever keeps what a run prints."""
        self._current()
        return tuple(self._values)

    def _current(self) -> Redactor:
        agents, token = self._agents(), self._token()
        before, named = self._known
        if agents is not before or token != named:
            tokens = (token, peer_token(token)) if token else ()
            self._values |= dict.fromkeys((*tokens, *_values(agents, self._variables)))
            self._redactor, self._known = Redactor(self._values), (agents, token)
        return self._redactor


def _values(agents: tuple[Agent, ...], variables: Mapping[str, str]) -> Iterator[str]:
    for agent in agents:
        yield from secret_values(agent, variables)
        for address in filter(is_hook, agent.events):
            try:
                names = read_hook(address).secrets
            except Mistake:
                continue
            yield from (variables[name] for name in names if variables.get(name))
