"""The sentences of other folders that are repeated here tell what they compared, as they do at home."""

import pytest

pytest.register_assert_rewrite("tests.runners.test_process_behaviours", "tests.runners.test_recovery")
