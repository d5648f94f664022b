"""What can go wrong, by name. Every message says what, how much, and what to do.

Messages are read by people who may not see the data, and may be logged: they
name parameters, shapes and limits, never a value that came from a person.
"""

from __future__ import annotations


class NoiseshapeError(ValueError):
    """Any input that Noiseshape refuses; a subclass says why."""


class InvalidInput(NoiseshapeError):
    """An argument outside its domain: negative, NaN, infinite, of the wrong shape or kind."""


class BudgetExceeded(NoiseshapeError):
    """A release would cost more privacy than is allowed; nothing was measured."""


class NotSpanned(NoiseshapeError):
    """A question that the strategy does not measure, so that no answer can be rebuilt."""


class TooLarge(NoiseshapeError):
    """A computation that would not fit: the message says what it needs and what to use instead."""


class NotConverged(NoiseshapeError):
    """A design stopped before it proved the gap that was asked for."""


class ReleaseFailed(NoiseshapeError):
    """A release that stopped after its debit; the message names the step, and nothing else."""


class LedgerError(NoiseshapeError):
    """A file that cannot be made, opened or written as a budget ledger."""


class LedgerMissing(LedgerError):
    """There is no file where the ledger should be; only ``Ledger.create`` makes one."""


class LedgerAltered(LedgerError):
    """A ledger that is damaged, edited, cut short, or older than a release that it paid for."""


class LedgerLocked(LedgerError):
    """Another process held the ledger for longer than is waited."""
