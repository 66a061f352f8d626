# mypy: disable-error-code="empty-body"
"""What may be asked of a fleet, each declared once: see `declared` for what becomes of a declaration.

Law: here stands every operation of `control`, with its parameters and their defaults; a test compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful.client.declared import asked, streamed
from wakeful.client.streams import follow, hear
from wakeful.client.task_calls import TaskCalls

if TYPE_CHECKING:
    from wakeful.control import answers, told


class Calls(TaskCalls):
    # ---- the fleet

    @asked
    def status(self) -> answers.Status:
        """The whole fleet on one screen."""

    @asked
    def agents(
        self, *, names: list[str] | None = None, after: str = "", limit: int | None = None
    ) -> answers.NamedPage[told.Agent]:
        """The agents by name, each with where it stands, what it is doing and what it has used today. With `names` only
        these, and those behind these addresses; who is unknown is left out."""

    @asked
    def agent(self, agent: str) -> answers.WholeAgent:
        """One agent: where it stands, what holds it, its day, and what it spent."""

    @asked
    def timeline(
        self, *, agents: list[str] | None = None, since: str | None = None, until: str | None = None
    ) -> answers.Timeline:
        """What happened to these agents over some hours, and what is ahead. Each has a lane: runs, verdicts, quiet
        hours, pauses, expected beats. Unless it is said whom and when, it is the first hundred, from six hours ago
        until in two."""

    @asked
    def costs(self, *, days: int = 14, agent: str | None = None) -> answers.Costs:
        """What each of the last days has cost. Of the fleet, and of each agent that has spent anything; or of one."""

    @asked
    def nodes(self) -> answers.Page[told.Node]:
        """The engines on this store, by name."""

    # ---- to ask for an agent's time

    @asked
    def send(
        self,
        agent: str,
        body: str,
        *,
        subject: str = "",
        type: str = "info",
        priority: str = "normal",
        key: str | None = None,
        reply_to: int | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> answers.Sent:
        """A message; high and urgent ones ask for a wake themselves, but not of whoever sends them."""

    @asked
    def wake(
        self, agent: str, *, reason: str | None = None, body: str | None = None, key: str | None = None
    ) -> answers.Reply:
        """The agent's inbox, now. An agent that wakes another says why, in one of three words, and leaves a message. A
        refusal is an answer, with its guard, its numbers and when to ask again."""

    @asked
    def tick(self, agent: str, *, reason: str | None = None, key: str | None = None) -> answers.Reply:
        """The agent's beat, now."""

    @asked
    def at(self, agent: str, when: str, *, reason: str | None = None, key: str | None = None) -> answers.Reply:
        """One beat at an instant. Quiet hours do not hold it; a pause does, until it is lifted."""

    @asked
    def run(
        self, agent: str, prompt: str, *, title: str | None = None, timeout: str | None = None, key: str | None = None
    ) -> answers.OneOff:
        """A one-off: a task without retries, on the same path as everything else. It never moves the position."""

    # ---- the inbox

    @asked
    def inbox(
        self,
        agent: str,
        *,
        state: str = "open",
        sender: str | None = None,
        type: str | None = None,
        priority: str | None = None,
        thread: int | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> answers.Page[told.Message]:
        """The agent's messages, oldest first; with `before`, the newest ones before it, newest first. `priority` is the
        least one."""

    @asked
    def mark_read(self, agent: str, messages: list[int]) -> answers.Changed:
        """These messages need no run any more."""

    @asked
    def snooze(self, agent: str, messages: list[int], until: str) -> answers.Snoozed:
        """Puts messages out of sight until then; they ring when it comes."""

    @asked
    def stuck(self, *, agent: str | None = None, after: str = "", limit: int = 100) -> answers.Stuck:
        """What was put before runs that ended, and is still there, the longest first."""

    # ---- why, and what is to come

    @asked
    def why(self, agent: str, *, cause: str = "timer", at: str | None = None, sender: str | None = None) -> answers.Why:
        """Why the agent runs or does not: what each guard says, now or `at` a past instant."""

    @asked
    def forecast(
        self, agent: str, *, n: int = 10, outcome: str = "done", run_length: str = "0s"
    ) -> answers.Page[told.Expected]:
        """Its next beats, if every run ends like that and takes so long."""

    @asked
    def wake_stats(self, agent: str) -> answers.WakeStats:
        """How much it was woken today, and what the limits have left."""

    @asked
    def decisions(
        self,
        *,
        agent: str | None = None,
        verdict: str | None = None,
        guard: str | None = None,
        cause: str | None = None,
        text: str | None = None,
        since: str | None = None,
        until: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> answers.Page[told.Decision]:
        """Every verdict that was reached, newest first. Of a search a page may be short, or empty, and not be the
        last."""

    @asked
    def decision(self, wake: int) -> answers.DecidedWake:
        """The last word on one wake, with what led to it."""

    # ---- limits and pauses

    @asked
    def settings(self, agent: str) -> answers.Settings:
        """Every limit that may be set, its value, and where that comes from."""

    @asked
    def set(self, agent: str, settings: dict[str, str | None], *, version: int | None = None) -> answers.Settings:
        """Values as a person types them; None takes an override back. With `version`, only if that is the one that
        holds: else `Outdated`."""

    @asked
    def pause(self, *, reason: str = "", duration: str | None = None, now: bool = False) -> answers.Receipt:
        """Nothing begins any more, by any path; `now` also ends what runs."""

    @asked
    def resume(self, *, owner: str | None = None) -> answers.Resumed:
        """Lifts the pauses of the fleet, or those of one owner."""

    @asked
    def pause_agent(
        self, agent: str, *, reason: str = "", duration: str | None = None, now: bool = False
    ) -> answers.Receipt:
        """Nothing of that agent begins. `source:NAME` holds what comes from that source, of all agents."""

    @asked
    def resume_agent(self, agent: str, *, owner: str | None = None) -> answers.Resumed:
        """Lifts the pauses of an agent, also what it brought on itself: quarantine, a burst, a used-up quota."""

    # ---- runs

    @asked
    def runs(
        self,
        *,
        agent: str | None = None,
        open: bool | None = None,
        outcome: str | None = None,
        cause: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> answers.Page[told.Run]:
        """Newest first. Of a search by outcome or cause a page may be short, or empty, and not be the last."""

    @asked
    def show_run(self, run: int) -> answers.ShownRun:
        """One run, with the wake that led to it, what it was told and shown, its tasks and its steps."""

    @asked
    def kill(self, run: int, *, at_once: bool = False) -> answers.Killed:
        """Asks for the end: TERM, the grace, KILL; `at_once` is KILL now. A one-off is then over for good."""

    @asked
    def blame(self, run: int) -> answers.Blame:
        """What led to the run, and what came of it so far."""

    @asked
    def output(self, run: int, *, stream: str = "stdout", offset: int = 0, limit: int = 65_536) -> answers.Output:
        """What the run printed, from a byte on; a negative offset counts from the end."""

    # ---- what goes on

    @asked
    def events(
        self,
        *,
        after: int | None = 0,
        agent: str | None = None,
        kinds: list[str] | None = None,
        limit: int = 100,
    ) -> answers.Events:
        """The append-only events, oldest first. `last` is where to go on later from."""

    @streamed(hear)
    def stream(
        self, *, after: int | None = None, agent: str | None = None, kinds: list[str] | None = None
    ) -> told.Event:
        """The events as they happen: those after the given one, or from now on. It goes on through restarts of the
        engine without losing one, and ends when it is closed."""

    @streamed(follow)
    def log(self, run: int, *, stream: str = "stdout", offset: int = 0) -> answers.Output:
        """What the run prints, as it does, until it is over."""

    # ---- the engine

    @asked
    def audit(self) -> answers.Audit:
        """Every stored fact against the events. It takes about a second for five thousand runs."""

    @asked
    def reload(self) -> answers.Reloaded:
        """The fleet file, read again now."""

    @asked
    def stop(self, *, drain: bool = False) -> answers.Stopping:
        """The engine leaves. Runs go on under their guardians; with `drain` it waits for them first."""

    @asked
    def backup(self, path: str) -> answers.Copied:
        """A copy of the store, while it is in use, in a new file where the engine is."""
