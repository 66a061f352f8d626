"""The test kit that ships with wakeful: a clock, runs and a world that exist only in virtual time, and their judges.

`contracts/` holds one suite per seam, for every implementation of it. `world` and `simulate` live a seeded fleet
through crashes, jumps of the clock and ill-behaved agents; `checkers/` judge what came of it.
"""
