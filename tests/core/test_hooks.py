"""What a signature proves: one delivery, of one sender, at one time, however it is written down."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta

import pytest

from wakeful.core.errors import Mistake
from wakeful.core.hooks import Delivery, Hook, Preset, Unverified, is_trial, read_body, read_hook, subject_of, verify

NOW = datetime(2026, 3, 2, 12, 0, 0, tzinfo=UTC)
SECRET = "it's a secret"
BODY = b'{"action": "opened"}'


def mac(secret: bytes, signed: bytes) -> bytes:
    return hmac.new(secret, signed, hashlib.sha256).digest()


def dated(id: str = "msg_1", at: datetime = NOW, body: bytes = BODY, secret: bytes = SECRET.encode()) -> bytes:
    return mac(secret, f"{id}.{int(at.timestamp())}.".encode() + body)


def signed(
    id: str = "msg_1", at: datetime = NOW, body: bytes = BODY, *, signature: str | None = None
) -> list[tuple[str, str]]:
    written = dated(id, at, body).hex() if signature is None else signature
    return [
        ("x-webhook-id", id),
        ("x-webhook-timestamp", str(int(at.timestamp()))),
        ("x-webhook-signature", written),
    ]


def standard(*signatures: str, id: str = "msg_1", at: datetime = NOW) -> list[tuple[str, str]]:
    return [
        ("webhook-id", id),
        ("webhook-timestamp", str(int(at.timestamp()))),
        ("webhook-signature", " ".join(signatures)),
    ]


def github(
    body: bytes = BODY, *, delivery: str = "72d3162e-cc78-11e3-81ab-4c9367dc0958", event: str = "issues"
) -> list[tuple[str, str]]:
    return [
        ("x-hub-signature-256", f"sha256={mac(SECRET.encode(), body).hex()}"),
        ("x-github-delivery", delivery),
        ("x-github-event", event),
    ]


def proved(
    preset: Preset, headers: list[tuple[str, str]], body: bytes = BODY, *, secrets=(SECRET,), now: datetime = NOW
) -> Delivery:
    return verify(preset, secrets, headers, body, now)


def refuses(preset: Preset, headers: list[tuple[str, str]], body: bytes = BODY, **given) -> str:
    with pytest.raises(Unverified) as raised:
        proved(preset, headers, body, **given)
    return str(raised.value)


# ---- what ON says


@pytest.mark.parametrize(
    ("address", "hook"),
    [
        ("webhook://ci", Hook(name="ci")),
        ("webhook://ci?secret=CI", Hook(name="ci", secrets=("CI",))),
        ("webhook://gh?preset=github&secret=A&secret=B", Hook(name="gh", preset=Preset.github, secrets=("A", "B"))),
    ],
)
def test_an_address_says_the_name_the_preset_and_where_the_secrets_are(address, hook):
    assert read_hook(address) == hook
    assert read_hook(address).source == f"webhook:{hook.name}"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("webhook://wake?secret=A", "asked for with the operator's token"),
        ("webhook://agent", "asked for with the operator's token"),
        ("webhook://gh?preset=githup", "as the preset"),
        ("webhook://gh?preset=github&preset=hmac", "one preset"),
        ("webhook://gh?secret=A&secret=B&secret=C", "at most 2"),
        ("webhook://gh?secret=A&secret=A", "at most 2 different"),
        ("webhook://gh/more", "nothing behind it"),
        ("webhook://gh#main", "nothing behind it"),
        ("webhook://[gh", "not an address"),
        ("webhook://me@gh", "a name"),
    ],
)
def test_an_address_that_is_not_clear_is_a_mistake(address, reason):
    with pytest.raises(Mistake) as raised:
        read_hook(address)
    assert reason in raised.value.reason and raised.value.remedy


# ---- the generic signature


@pytest.mark.parametrize("age", [0, 1, 299, 300, -299, -300])
def test_a_delivery_that_is_signed_within_the_window_is_proved(age):
    headers = signed(at=NOW - timedelta(seconds=age))
    assert proved(Preset.hmac, headers).id == "msg_1"


@pytest.mark.parametrize("age", [301, 3600, -301, -86_400])
def test_a_delivery_that_is_too_old_or_from_the_future_is_refused(age):
    told = refuses(Preset.hmac, signed(at=NOW - timedelta(seconds=age)))
    assert ("old" if age > 0 else "from the future") in told


@pytest.mark.parametrize(
    "spell",
    [
        lambda digest: digest.hex().upper(),
        lambda digest: f"sha256={digest.hex()}",
        lambda digest: base64.b64encode(digest).decode(),
        lambda digest: base64.urlsafe_b64encode(digest).decode(),
        lambda digest: base64.urlsafe_b64encode(digest).decode().rstrip("="),
        lambda digest: f"  {digest.hex()}  ",
        lambda digest: f"{digest.hex()} {digest.hex()}",
    ],
)
def test_however_a_signature_is_written_it_is_the_same_delivery(spell):
    assert proved(Preset.hmac, signed(signature=spell(dated()))).id == "msg_1"


def test_of_whatever_is_signed_nothing_can_be_another():
    assert "no signature" in refuses(Preset.hmac, signed(), b'{"action": "closed"}')
    assert "no signature" in refuses(Preset.hmac, signed(), BODY + b" ")
    later = [(name, "1772452801" if name.endswith("timestamp") else value) for name, value in signed()]
    assert "no signature" in refuses(Preset.hmac, later)
    renamed = [(name, "msg_2" if name.endswith("-id") else value) for name, value in signed()]
    assert "no signature" in refuses(Preset.hmac, renamed)
    assert "no signature" in refuses(Preset.hmac, signed(), secrets=("another",))


@pytest.mark.parametrize("name", ["x-webhook-id", "x-webhook-timestamp", "x-webhook-signature"])
@pytest.mark.parametrize("also", ["", "x-"])
def test_whatever_is_said_twice_or_not_at_all_proves_nothing(name, also):
    lacking = [each for each in signed() if each[0] != name]
    assert "found 0" in refuses(Preset.hmac, lacking)
    twice = [*signed(), (also + name.removeprefix("x-"), dict(signed())[name])]
    assert "found 2" in refuses(Preset.hmac, twice)


def test_one_signature_cannot_be_read_as_that_of_another_id_and_time():
    body = b"1772452800.{}"
    headers = signed(body=body)
    moment = str(int(NOW.timestamp()))
    shifted = [("x-webhook-id", f"msg_1.{moment}"), ("x-webhook-timestamp", "1772452800"), headers[2]]
    assert "without a dot" in refuses(Preset.hmac, shifted, b"{}")


@pytest.mark.parametrize("moment", ["", "now", "1.5", "+1772452800", "１７７２４５２８００", "99999999999999999999"])
def test_a_time_that_is_no_number_of_seconds_is_refused(moment):
    headers = [(name, moment if name.endswith("timestamp") else value) for name, value in signed()]
    assert refuses(Preset.hmac, headers)


@pytest.mark.parametrize("secrets", [(), ("",)])
@pytest.mark.parametrize("preset", Preset)
def test_without_a_secret_nothing_is_proved(preset, secrets):
    assert "no secret" in refuses(preset, [*signed(), *github()], secrets=secrets)


def test_of_two_secrets_either_holds():
    assert proved(Preset.hmac, signed(), secrets=("the new one", SECRET)).id == "msg_1"
    assert proved(Preset.hmac, signed(), secrets=(SECRET, "the old one")).id == "msg_1"


# ---- Standard Webhooks


def test_the_example_of_the_specification_is_proved():
    body = b'{"test": 2432232314}'
    headers = [
        ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
        ("webhook-timestamp", "1614265330"),
        ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
    ]
    now = datetime.fromtimestamp(1614265330, UTC)
    for secret in ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"):
        found = proved(Preset.standard, headers, body, secrets=(secret,), now=now)
        assert found.id == "msg_p5jXN8AQM9LWM0D4loKWxJek"


def test_one_of_several_signatures_is_enough_and_those_of_other_versions_are_none():
    good = f"v1,{base64.b64encode(dated()).decode()}"
    bad = f"v1,{base64.b64encode(dated(id='msg_9')).decode()}"
    assert proved(Preset.standard, standard(bad, "v1a,whatever", good)).id == "msg_1"
    assert "no signature" in refuses(Preset.standard, standard(bad))
    assert "no signature" in refuses(Preset.standard, standard(good.replace("v1,", "v2,")))
    assert "no signature" in refuses(Preset.standard, standard(good.removeprefix("v1,")))
    assert "no signature" in refuses(Preset.standard, standard(*[bad] * 10, good))


def test_a_secret_whose_base64_is_broken_opens_nothing():
    assert "no secret" in refuses(Preset.standard, standard("v1,x"), secrets=("whsec_§",))


# ---- GitHub


def test_the_example_of_githubs_documentation_is_proved():
    headers = [
        ("x-hub-signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
        ("x-github-delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"),
    ]
    found = proved(Preset.github, headers, b"Hello, World!", secrets=("It's a Secret to Everybody",))
    assert found.id == "72d3162e-cc78-11e3-81ab-4c9367dc0958"


def test_a_delivery_of_github_is_known_by_its_id_and_never_by_what_it_says():
    first = proved(Preset.github, github())
    assert proved(Preset.github, github(delivery="another")).id != first.id
    body = b'{"action": "closed"}'
    assert proved(Preset.github, github(body), body).id == first.id
    assert first.sent is None


@pytest.mark.parametrize(
    "headers",
    [
        github()[1:],
        [*github(), github()[0]],
        [*github(), ("x-github-delivery", "another")],
        [github()[0]],
        [("x-hub-signature-256", github()[0][1].removeprefix("sha256=")), *github()[1:]],
        [("x-hub-signature-256", github()[0][1] + "00"), *github()[1:]],
        [("x-hub-signature", github()[0][1]), *github()[1:]],
        github(delivery="a b"),
        github(event="<script>"),
        github(b"{}"),
    ],
)
def test_what_github_would_not_send_is_refused(headers):
    assert refuses(Preset.github, headers)


# ---- what a delivery says


@pytest.mark.parametrize(
    ("event", "said", "subject"),
    [
        ("issues", {"action": "opened"}, "gh: issues opened"),
        (None, {"type": "invoice.paid"}, "gh: invoice.paid"),
        (None, {"event": "build", "action": "failed"}, "gh: build failed"),
        (None, {"type": "a\nb", "event": ["x"], "action": "y" * 200}, "gh"),
        (None, [1, 2], "gh"),
    ],
)
def test_its_subject_is_what_the_sender_calls_it_where_that_fits_a_line(event, said, subject):
    assert subject_of("gh", Delivery(id="1", event=event), said) == subject


def test_a_trial_of_github_is_one_by_its_name_and_by_what_is_signed():
    trial = Delivery(id="1", event="ping")
    assert is_trial(Preset.github, trial, {"zen": "Keep it logically awesome.", "hook_id": 1})
    assert not is_trial(Preset.github, trial, {"action": "opened"})
    assert not is_trial(Preset.standard, trial, {"zen": "x"})


@pytest.mark.parametrize(
    "body", [b"", b"payload=%7B%7D", b"\xff", b"NaN", b"[" * 100_000, json.dumps("x").encode()[:2]]
)
def test_a_body_that_is_not_json_is_a_mistake(body):
    with pytest.raises(Mistake):
        read_body(body)
