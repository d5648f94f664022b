"""What the ledger's tests do in processes of their own, and the charges that all of them use."""

import functools
import os
import signal
import sqlite3
from fractions import Fraction

import numpy as np

from noiseshape.errors import BudgetExceeded
from noiseshape.privacy import Budget, Cost, People, Profile
from noiseshape.privacy.ledger import Charge, Ledger


def charge(cost=Fraction(1, 4), *, units=None, people=None, **fields):
    """A charge of mu^2 = ``cost``, or of a profile of ``units`` sixteenths."""
    people = people or People()
    profile = None if units is None else Profile(np.array(units, dtype=object), 4)
    cost = Cost(profile.greatest if profile else Fraction(cost), people.neighbours)
    text = {"who": "ana", "what": "by age", "schema_hash": "5c", "selection": "a1"}
    return Charge(
        people=people, cost=cost, profile=profile, **{**text, "spec_hash": "d3", **fields}
    )


def race(path, cost, times, ready, results):
    """Debit ``times`` times, once everybody is ready; report how many were allowed."""
    ledger = Ledger.open(path)
    mine = charge(cost, who=f"process {os.getpid()}")
    ready.wait(60)
    allowed = 0
    for _ in range(times):
        try:
            ledger.debit(mine)
        except BudgetExceeded:
            pass
        else:
            allowed += 1
    results.put(allowed)


def debit_until_killed(path, report):
    """Debit for ever, reporting the number of each entry once it stands."""
    ledger = Ledger.open(path)
    while True:
        report.send(ledger.debit(charge(Fraction(1, 2**20))).number)


class Steps(sqlite3.Connection):
    """A connection that counts its steps, closing included, and can kill its process at one."""

    taken: list[str] = []  # noqa: RUF012
    fatal: tuple[int, str] | None = None

    def _step(self, name, action):
        self.taken.append(name)
        if self.fatal == (len(self.taken), "before"):
            os.kill(os.getpid(), signal.SIGKILL)
        result = action()
        if self.fatal == (len(self.taken), "after"):
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    def execute(self, sql, *parameters):
        return self._step(sql, functools.partial(super().execute, sql, *parameters))

    def close(self):
        return self._step("close", super().close)


def die_at(step, moment, prepare, path):
    """Do what is prepared, and be killed just before or just after one of its steps."""
    action = prepare(path)
    Steps.fatal = (step, moment)
    sqlite3.connect = functools.partial(sqlite3.connect, factory=Steps)
    action()


def creation(path):
    return functools.partial(Ledger.create, path, Budget(mu=1.0))


def debit(path):
    return functools.partial(Ledger.open(path).debit, charge(who="the one who was killed"))
