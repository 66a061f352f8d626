"""What the API says of itself holds for requests that nobody thought of; `make fuzz` asks many more of them."""

from tests.http.fuzzed import fuzz


def test_no_request_that_the_description_allows_or_forbids_finds_it_wrong():
    asked, told = fuzz(1, ("fuzzing", "stateful"))
    assert asked > 100, told
