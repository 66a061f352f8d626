"""What an engine knows to be secret: of the fleet as it stands, and of all that it was."""

import base64
from concurrent.futures import ThreadPoolExecutor

from wakeful.core.agents import Agent
from wakeful.core.peers import peer_token
from wakeful.runners.hiding import Hiding

KEY, HOOK, PLAIN, TOKEN = "sk-live_9aZ~bY8cX7dW", "whsec-0123456789", "europe-west", "operators-own-token-0123456789"
VARIABLES = {"DEMO_API_KEY": KEY, "HOOK_VALUE": HOOK, "REGION": PLAIN, "PIN": "83920175"}
RUN = f"run.17.3.1772452800000007.{'0f' * 32}"
WREN = Agent(name="wren", address="wren", environment=("DEMO_API_KEY", "REGION"))
MOSS = Agent(name="moss", address="moss", secrets=("PIN",), events=("webhook://ci?secret=HOOK_VALUE",))


def test_values_of_secrets_of_telling_names_and_of_webhooks_are_hidden_and_others_are_not():
    hide = Hiding(lambda: (WREN, MOSS), VARIABLES, lambda: TOKEN)
    for secret in (KEY, HOOK, "83920175", TOKEN, peer_token(TOKEN), RUN):
        assert hide(f"ä {secret} ö") == "ä [redacted] ö"
    assert base64.b64encode(KEY.encode()).decode()[:20] not in hide(base64.b64encode(KEY.encode()).decode())
    for text in (f"ä {PLAIN} ö", "run.17.3.0f", "\ud800 broken", ""):
        assert hide(text) is text


def test_an_edit_adds_what_is_secret_and_takes_nothing_away():
    fleet, token = [(WREN,)], [TOKEN]
    hide = Hiding(lambda: fleet[0], VARIABLES, lambda: token[0])
    assert hide(KEY) == "[redacted]" and hide(HOOK) == HOOK
    fleet[0], token[0] = (MOSS,), "another-token-of-the-operator"
    assert [hide(text) for text in (KEY, HOOK, TOKEN, token[0])] == ["[redacted]"] * 4
    assert {KEY, HOOK, TOKEN, *token, *map(peer_token, (TOKEN, *token))} <= set(hide.values())


def test_a_name_stays_its_own_and_cannot_be_guessed_from():
    hide, other = (Hiding(lambda: (WREN, MOSS), VARIABLES, key=key) for key in (b"ours", b"theirs"))
    assert hide.name("plain") == "plain"
    one, two = hide.name(f"{KEY}-1"), hide.name(f"{HOOK}-1")
    assert one != two and one == hide.name(f"{KEY}-1") != other.name(f"{KEY}-1")
    assert one.startswith("[redacted]-1#") and KEY not in one


def test_any_number_of_threads_may_ask():
    hide = Hiding(lambda: (WREN, MOSS), VARIABLES, lambda: TOKEN)
    texts = [f"{number} {KEY} {HOOK}" if number % 2 else f"{number} plain" for number in range(400)]
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(hide, texts))
    assert told == [f"{n} [redacted] [redacted]" if n % 2 else f"{n} plain" for n in range(400)]
