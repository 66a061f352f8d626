"""Everything that may be asked of a fleet, in one place.

Each operation takes who asks and what its name needs, and gives what JSON holds; see `operations` for how they are
spelled elsewhere. A wake that is refused is an answer. What is raised is `Forbidden`, or one of `core.errors`.
"""

from __future__ import annotations

from wakeful.control.asking import Asking
from wakeful.control.audits import Audits
from wakeful.control.base import judged
from wakeful.control.blame import Blame
from wakeful.control.changing import Changing
from wakeful.control.checkpoints import Checkpoints
from wakeful.control.costs import Costs
from wakeful.control.decided import Decided
from wakeful.control.holding import Holding
from wakeful.control.hooks import Hooks
from wakeful.control.inbox import Inbox
from wakeful.control.keeping import Keeping
from wakeful.control.opinions import Opinions
from wakeful.control.peers import Peers
from wakeful.control.reading import Reading
from wakeful.control.settings import Settings
from wakeful.control.tasking import Tasking
from wakeful.control.timeline import Timeline
from wakeful.control.wake_stats import WakeStats


@judged
class Control(
    Reading,
    Inbox,
    Blame,
    Asking,
    Hooks,
    Tasking,
    Changing,
    Checkpoints,
    Opinions,
    Decided,
    Timeline,
    Costs,
    Settings,
    WakeStats,
    Holding,
    Keeping,
    Peers,
    Audits,
):
    """Any number of callers at once; all of them go through the one store."""
