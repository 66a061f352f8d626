"""The public names of wakeful, pinned by a test: adding one is a promise, removing one a break.

Importing this package stays cheap, because the CLI starts here: a name that needs more than `core` is loaded
when it is asked for.
"""

from wakeful.core.errors import Mistake, WakefulError

__all__ = ["Mistake", "WakefulError", "__version__"]

__version__ = "0.1.0"
