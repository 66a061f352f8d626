"""The address of an agent elsewhere: what is sent, what is for us, and what is refused."""

import pytest

from wakeful.core.endpoints import Endpoint, read_endpoint
from wakeful.core.errors import Mistake


@pytest.mark.parametrize(
    ("written", "url", "token"),
    [
        ("http://localhost:8080", "http://localhost:8080/", None),
        ("https://there.example/agents/wren?team=night", "https://there.example/agents/wren?team=night", None),
        ("https://there.example/wren#token=WREN_TOKEN", "https://there.example/wren", "WREN_TOKEN"),
        ("https://[::1]:8443/wren#", "https://[::1]:8443/wren", None),
    ],
)
def test_what_stands_behind_the_hash_is_never_sent(written, url, token):
    assert read_endpoint(written) == Endpoint(url=url, token=token)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("there.example/wren", "not an address of http or https"),
        ("ftp://there.example", "not an address of http or https"),
        ("https:///wren", "not an address of http or https"),
        ("http://there:0/", "not an address of http or https"),
        ("http://there:port/", "not an address of http or https"),
        ("http://[::1/", "not an address of http or https"),
        ("https://wren:sesame@there.example/", "a password stands in the address"),
        ("https://there.example/wrén", "signs that cannot be sent"),
        ("https://there.example/#bearer=X", "one token, and nothing else"),
        ("https://there.example/#token=", "one token, and nothing else"),
        ("https://there.example/#token=A&token=B", "one token, and nothing else"),
        ("https://there.example/#token", "not name=value"),
    ],
)
def test_a_mistake_says_what_to_write_and_does_not_repeat_the_address(written, problem):
    with pytest.raises(Mistake, match=problem) as caught:
        read_endpoint(written)
    assert "write" in caught.value.remedy and "sesame" not in str(caught.value)
