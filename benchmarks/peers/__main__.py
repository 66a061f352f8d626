"""`python -m benchmarks.peers`: wakeful beside its peers in one run; `make bench-peers` makes their environment first.

Exit 0 whoever leads, and whoever failed: the table says so.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

import wakeful
from benchmarks.peers.campaign import Campaign, read
from benchmarks.peers.machine import adopt_orphans, flush_time, kind
from benchmarks.peers.measures import FULL, QUICK, Setup
from benchmarks.peers.peer import Peer
from benchmarks.peers.report import document, rows
from benchmarks.peers.roster import peers
from benchmarks.peers.servers import Servers, installed
from benchmarks.peers.stage import Python

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build"
RESULTS = HERE.parent / "RESULTS.md"
ENVIRONMENT = BUILD / "peers-venv" / "bin" / "python"
# Seconds for which a quiet machine is waited for before each sample.
GATE = 60.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--resume", action="store_true", help="go on with a run that was broken off")
    parser.add_argument("--quick", action="store_true", help="one round with few jobs; build/peers.md only")
    parser.add_argument("--only", default="", metavar="NAMES", help="parts of names, with commas; build/peers.md only")
    parser.add_argument("--rounds", type=int, metavar="N", help="3, or 1 with --quick")
    parser.add_argument("--gate", type=float, default=GATE, metavar="SECONDS", help="how long to wait for quiet")
    parser.add_argument("--report", action="store_true", help="the table of the last run again, without measuring")
    return parser.parse_args()


def chosen(only: str) -> list[type[Peer]]:
    wanted = [word.strip().lower() for word in only.split(",") if word.strip()]
    found = peers()
    return [each for each in found if any(word in each.title.lower() for word in wanted)] if wanted else found


def missing_of(kinds: list[type[Peer]], versions: dict[str, str | None]) -> dict[str, str]:
    lacking = {
        each.__name__: [name for name in each.packages if versions.get(name) is None] for each in kinds if not each.ours
    }
    return {name: f"not installed: {', '.join(packages)}" for name, packages in lacking.items() if packages}


def main() -> None:
    given = arguments()
    # Asked to leave, we leave as from the keyboard: with everything that we started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    adopt_orphans()
    BUILD.mkdir(exist_ok=True)
    kinds, log, about = chosen(given.only), BUILD / "peers.jsonl", BUILD / "peers-about.txt"
    versions = installed(ENVIRONMENT, sorted({name for each in peers() for name in each.packages}))
    missing = missing_of(kinds, versions)
    if not given.report:
        measured(given, [each for each in kinds if each.__name__ not in missing], log, about, versions)
    command = "make bench-peers" + (" QUICK=1" if given.quick else "")
    found = rows(kinds, read(log), missing)
    text = document(found, command=command, about=about.read_text().splitlines(), quick=given.quick)
    (BUILD / "peers.md").write_text(text, encoding="utf-8")
    if not (given.quick or given.only):
        RESULTS.write_text(text, encoding="utf-8")
    print(text)


def measured(
    given: argparse.Namespace, kinds: list[type[Peer]], log: Path, about: Path, versions: dict[str, str | None]
) -> None:
    began, scale = perf_counter(), QUICK if given.quick else FULL

    def say(text: str) -> None:
        print(f"{perf_counter() - began:7.1f} s  {text}", file=sys.stderr, flush=True)

    python = Python(ours=Path(sys.executable), peers=ENVIRONMENT)
    # Beside the working tree: what is durable must lie on its disk, not in memory.
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="peers-") as folder:
        servers = Servers(Path(folder) / "stores", python.peers)
        try:
            said = told(Path(folder), servers, versions)
            rounds = given.rounds or (1 if given.quick else 3)
            gate = 0.0 if given.quick else given.gate
            campaign = Campaign(Setup(servers, python, scale), log, rounds=rounds, gate=gate, say=say)
            campaign.run(kinds, resume=given.resume)
        finally:
            servers.stop()
    turns = "one round" if rounds == 1 else f"{rounds} rounds"
    said.append(f"{turns} of {scale.jobs:,} jobs; the run took {(perf_counter() - began) / 60:.0f} minutes")
    about.write_text("\n".join(said) + "\n")


def told(folder: Path, servers: Servers, versions: dict[str, str | None]) -> list[str]:
    disk, other = flush_time(folder), flush_time(Path(tempfile.gettempdir()))
    stores = ", ".join(f"{name} {version}" for name, version in servers.versions().items())
    packages = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    return [
        f"{datetime.now(UTC):%Y-%m-%d}, {kind()}",
        f"one fdatasync: {disk:.0f} µs where SQLite lies, {other:.0f} µs where the servers do",
        f"wakeful {wakeful.__version__}; {stores}; {packages}",
    ]


if __name__ == "__main__":
    main()
