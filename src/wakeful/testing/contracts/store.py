"""The contract of every store, gathered from its themes.

An implementation subclasses `StoreContract` in its tests and gives `make_store`; the sentences do the rest.
"""

from __future__ import annotations

from wakeful.testing.contracts.store_changes import ChangesContract
from wakeful.testing.contracts.store_checking import CheckingContract
from wakeful.testing.contracts.store_crashes import CrashesContract
from wakeful.testing.contracts.store_deciding import DecidingContract
from wakeful.testing.contracts.store_declaring import DeclaringContract
from wakeful.testing.contracts.store_drawing import DrawingContract
from wakeful.testing.contracts.store_finishing import FinishingContract
from wakeful.testing.contracts.store_handling import HandlingContract
from wakeful.testing.contracts.store_inboxes import InboxesContract
from wakeful.testing.contracts.store_instants import InstantsContract
from wakeful.testing.contracts.store_keeping import KeepingContract
from wakeful.testing.contracts.store_lasting import LastingContract
from wakeful.testing.contracts.store_limits import LimitsContract
from wakeful.testing.contracts.store_listing import ListingContract
from wakeful.testing.contracts.store_measuring import MeasuringContract
from wakeful.testing.contracts.store_mirrors import MirrorsContract
from wakeful.testing.contracts.store_nodes import NodesContract
from wakeful.testing.contracts.store_noting import NotingContract
from wakeful.testing.contracts.store_orders import OrdersContract
from wakeful.testing.contracts.store_output import OutputContract
from wakeful.testing.contracts.store_pauses import PausesContract
from wakeful.testing.contracts.store_places import PlacesContract
from wakeful.testing.contracts.store_queue import QueueContract
from wakeful.testing.contracts.store_reading import ReadingContract
from wakeful.testing.contracts.store_recording import RecordingContract
from wakeful.testing.contracts.store_recovery import RecoveryContract
from wakeful.testing.contracts.store_recurrences import RecurrencesContract
from wakeful.testing.contracts.store_senders import SendersContract
from wakeful.testing.contracts.store_shifts import ShiftsContract
from wakeful.testing.contracts.store_stopping import StoppingContract
from wakeful.testing.contracts.store_taking import TakingContract
from wakeful.testing.contracts.store_tasks import TasksContract
from wakeful.testing.contracts.store_tending import TendingContract
from wakeful.testing.contracts.store_waiting import WaitingContract


class StoreContract(
    DeclaringContract,
    RecordingContract,
    MirrorsContract,
    TendingContract,
    HandlingContract,
    LastingContract,
    DecidingContract,
    WaitingContract,
    LimitsContract,
    SendersContract,
    CheckingContract,
    OrdersContract,
    RecoveryContract,
    NodesContract,
    NotingContract,
    InstantsContract,
    OutputContract,
    StoppingContract,
    FinishingContract,
    TasksContract,
    QueueContract,
    PlacesContract,
    ChangesContract,
    RecurrencesContract,
    ShiftsContract,
    TakingContract,
    PausesContract,
    CrashesContract,
    ReadingContract,
    ListingContract,
    DrawingContract,
    MeasuringContract,
    InboxesContract,
    KeepingContract,
):
    """Every verb and every law of `wakeful.store.protocol`."""
