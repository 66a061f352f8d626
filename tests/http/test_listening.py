"""Where the fleet may be asked: the loopback, and other addresses only by TLS or by a word that says otherwise."""

import http.client
import socket
import ssl
from contextlib import closing

import pytest

from tests.http.certificates import NAME, make
from tests.http.served import KEYS, PATIENCE, raw, serve
from tests.http.stub import Stub
from wakeful.core.errors import Mistake
from wakeful.http.listening import Reach, listen

TOKEN = {"Authorization": f"Bearer {KEYS.operator}"}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def wide(pair):
    """A reach beyond the loopback, by TLS."""
    certificate, key = pair
    return Reach(host="0.0.0.0", names=(NAME,), certificate=certificate, private_key=key)


# ---- what is refused


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "2001:db8::7"])
def test_another_address_needs_a_certificate_or_a_word(host):
    with pytest.raises(Mistake, match="could read the token") as told:
        listen(Reach(host=host, names=(NAME,)))
    assert "--certificate" in told.value.remedy and "--insecure" in told.value.remedy and "ssh -L" in told.value.remedy


def test_half_a_certificate_is_none(pair):
    for half in ({"certificate": pair[0]}, {"private_key": pair[1]}):
        with pytest.raises(Mistake, match="could read the token"):
            listen(Reach(host="0.0.0.0", names=(NAME,), **half))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"insecure": True}, "both a certificate and --insecure"),
        ({"names": ()}, "none by which it can be called"),
        ({"names": ("evil example",)}, "expected a name"),
        ({"names": ("*",)}, "expected a name"),
        ({"host": "127.0.0.1"}, "plain HTTP"),
        ({"host": "example.org"}, "not an address"),
        ({"port": 65_536}, "a port is a number"),
    ],
)
def test_what_does_not_go_together_is_a_mistake(pair, change, found):
    given = {"host": "0.0.0.0", "names": (NAME,), "certificate": pair[0], "private_key": pair[1], **change}
    with pytest.raises(Mistake, match=found):
        listen(Reach(**given))


def test_a_key_that_cannot_be_used_is_a_mistake_that_names_the_file(pair, tmp_path):
    certificate, key = pair
    open_key, broken = tmp_path / "open.pem", tmp_path / "broken.pem"
    open_key.write_bytes(key.read_bytes())
    open_key.chmod(0o644)
    broken.write_text("no key")
    broken.chmod(0o600)
    for path, found in ((open_key, "everybody can read"), (broken, "cannot be"), (tmp_path / "none", "cannot be read")):
        with pytest.raises(Mistake, match=found) as told:
            listen(Reach(host="0.0.0.0", names=(NAME,), certificate=certificate, private_key=path))
        assert path.name in told.value.reason


# ---- what is served


def test_the_loopback_is_served_beside_it_for_those_on_this_machine(wide):
    with closing(listen(wide)) as listening:
        assert listening.local.getsockname()[0] == "127.0.0.1"
        assert listening.url == f"http://127.0.0.1:{listening.local.getsockname()[1]}"
        assert listening.wide_url == f"https://0.0.0.0:{listening.wide.getsockname()[1]}"


def test_the_loopback_keeps_the_port_that_runs_of_an_earlier_engine_know(wide):
    with closing(listen(wide)) as first:
        before = first.local.getsockname()[1]
    with closing(listen(wide, before=before)) as second:
        assert second.local.getsockname()[1] == before


def test_it_is_called_by_the_names_that_were_said_and_by_no_address(wide):
    with closing(listen(wide)) as listening:
        local, port = listening.local.getsockname()[1], listening.wide.getsockname()[1]
        assert {NAME, f"{NAME}:{port}", f"127.0.0.1:{local}"} <= listening.hosts
        assert not [host for host in listening.hosts if host.startswith("0.0.0.0")]
        assert listening.origins == frozenset()


def test_without_tls_of_our_own_somebody_else_may_speak_it_in_our_name():
    with closing(listen(Reach(host="0.0.0.0", names=("Fleet.example.org:8443",), insecure=True))) as listening:
        assert "fleet.example.org:8443" in listening.hosts
        assert listening.origins == {"https://fleet.example.org:8443"}
        assert listening.context is None and listening.wide_url.startswith("http://0.0.0.0:")
    with closing(listen(Reach(names=("fleet.example.org",)))) as listening:
        assert listening.wide is None
        assert {"fleet.example.org", f"127.0.0.1:{listening.local.getsockname()[1]}"} <= listening.hosts


# ---- over TLS


def trusting(pair) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(pair[0]))


@pytest.fixture(scope="module")
def secured(pair):
    control = Stub()
    certificate, key = pair
    reach = Reach(host="0.0.0.0", names=(NAME,), certificate=certificate, private_key=key)
    listening = listen(reach)
    with serve(lambda: control, listening=listening, deadline=0.5) as served:
        yield served, listening.wide.getsockname()[1]


def ask(port: int, pair, host: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=trusting(pair), timeout=PATIENCE)
    with closing(connection):
        connection.request("GET", "/v1/status", headers={"Host": host, **TOKEN, **headers})
        answer = connection.getresponse()
        answer.read()
        return answer


def test_the_token_holds_over_tls_and_so_do_names_and_origins(secured, pair):
    _, port = secured
    host = f"{NAME}:{port}"
    assert ask(port, pair, host).status == 200
    assert ask(port, pair, host, Authorization="Bearer wrong").status == 401
    assert ask(port, pair, f"0.0.0.0:{port}").status == 421
    assert ask(port, pair, host, Origin=f"https://{host}").status == 200
    assert ask(port, pair, host, Origin=f"http://{host}").status == 403


def test_nothing_is_said_in_plain_where_tls_is_spoken(secured):
    served, port = secured
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(f"GET /healthz HTTP/1.1\r\nHost: {NAME}:{port}\r\n\r\n".encode())
        assert b"HTTP/1.1 200" not in raw(connection)
    assert served.ask("GET", "/healthz").status == 200


def test_a_handshake_that_does_not_come_on_is_cut_off(secured):
    _, port = secured
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        assert raw(connection) == b""
