"""One contract for each seam: whoever adds an implementation subclasses it, and is told in sentences what it breaks."""

from pkgutil import iter_modules

import pytest

# The contracts are tests in all but their file names: their asserts should tell what they compared.
pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in iter_modules(__path__)))
