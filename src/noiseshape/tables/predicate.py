"""The words of ``where``: a small language, parsed, never evaluated as code.

    AGEP >= 18 and HOURS > 40
    SEX in ("F", "M") or not married
    18 <= AGEP < 65 and REGION is not missing

Every comparison is between one column (or recode) and public values, so that a predicate is a
truth value for each cell; it reads no row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, NoReturn, Protocol

from ..errors import InvalidInput
from .domains import Literals, Operator
from .steps import Steps

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)(?![\w.])"
    r"|(?P<text>'[^']*'|\"[^\"]*\")"
    r"|(?P<quoted>`[^`]+`)"
    r"|(?P<word>[^\W\d]\w*)"
    r"|(?P<sign><=|>=|==|!=|<|>|=|\(|\)|,|-))"
)
_FLIPPED: dict[str, Operator] = {
    "<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!=",
}  # fmt: skip
_RESERVED = {"and", "or", "not", "in", "is", "missing", "other", "true", "false"}

MOST_NESTED = 50


@dataclass(frozen=True, eq=False)
class Leaf:
    """The truth of one comparison, over the cells of one column."""

    column: str
    steps: Steps


@dataclass(frozen=True, eq=False)
class Node:
    """Parts joined by and, or, not."""

    how: Literal["and", "or", "not"]
    parts: tuple[Predicate, ...]


Predicate = Leaf | Node


def leaves(predicate: Predicate) -> Iterator[Leaf]:
    """Yield the comparisons in a predicate."""
    if isinstance(predicate, Leaf):
        yield predicate
    else:
        for part in predicate.parts:
            yield from leaves(part)


class Axis(Protocol):
    """A name that can be compared: a column or a recode of one."""

    @property
    def column(self) -> str:
        """The column whose cells the comparisons are over."""

    def compare(self, operator: Operator, value: Literals) -> Steps:
        """Return the truth of "operator value" over the cells."""

    def named(self, special: str) -> Steps:
        """Return the truth of "is missing" or "is other" over the cells."""

    @property
    def truth(self) -> bool:
        """Whether the name alone is a condition."""


def parse(text: str, resolve: Callable[[str], Axis | None], names: tuple[str, ...]) -> Predicate:
    """Return the predicate that a text says, or point at the character where it stops to.

    Parameters
    ----------
    text
        Such as ``"AGEP >= 18 and HOURS > 40"``.
    resolve
        From a name to what it can be compared as, or None where there is none.
    names
        All the names, for suggestions.
    """
    if not isinstance(text, str):
        raise InvalidInput(f"a condition must be text, got {type(text).__name__}.")
    return _Parser(text, resolve, names).whole()


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


class _Parser:
    def __init__(
        self, text: str, resolve: Callable[[str], Axis | None], names: tuple[str, ...]
    ) -> None:
        self.text, self.resolve, self.names = text, resolve, names
        self.tokens = list(self._tokens())
        self.next = 0
        self.depth = 0

    def _tokens(self) -> Iterator[_Token]:
        at, end = 0, len(self.text.rstrip())
        while at < end:
            match = _TOKEN.match(self.text, at)
            if not match:
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
                self._fail(at, "this character is not understood")
            kind = str(match.lastgroup)
            text, start = match[kind], match.start(kind)
            if kind == "word" and text.lower() in _RESERVED:
                kind, text = "reserved", text.lower()
            if kind == "sign" and text == "=":
                text = "=="
            yield _Token(kind, text, start)
            at = match.end()
        yield _Token("end", "", end)

    def _fail(self, at: int, what: str) -> NoReturn:
        pointer = self.text[:at].replace("\t", " ")
        raise InvalidInput(
            f"the condition cannot be read at character {at + 1}: {what}.\n"
            f"  {self.text}\n  {' ' * len(pointer)}^"
        ) from None

    @property
    def token(self) -> _Token:
        return self.tokens[self.next]

    def _take(self, *texts: str) -> bool:
        token = self.token
        if token.kind in ("reserved", "sign") and token.text in texts:
            self.next += 1
            return True
        return False

    def whole(self) -> Predicate:
        if self.token.kind == "end":
            self._fail(0, "it is empty")
        found = self._or()
        if self.token.kind != "end":
            self._fail(self.token.at, "expected and, or, or the end")
        return found

    def _or(self) -> Predicate:
        return self._joined("or", self._and)

    def _and(self) -> Predicate:
        return self._joined("and", self._not)

    def _joined(self, word: Literal["and", "or"], part: Callable[[], Predicate]) -> Predicate:
        parts = [part()]
        while self._take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Node(word, tuple(parts))

    def _not(self) -> Predicate:
        start = self.token.at
        self.depth += 1
        if self.depth > MOST_NESTED:
            self._fail(start, f"it is nested more than {MOST_NESTED} deep")
        try:
            if self._take("not"):
                return Node("not", (self._not(),))
            if self._take("("):
                inside = self._or()
                if not self._take(")"):
                    self._fail(self.token.at, "expected a closing parenthesis")
                return inside
            return self._comparison()
        finally:
            self.depth -= 1

    def _comparison(self) -> Predicate:
        """Read column op value, value op column [op value], column in (...), column is ...."""
        if self._is_value():
            at, value = self.token.at, self._value()
            operator = self._operator()
            if operator is None:
                self._fail(self.token.at, "expected a comparison such as <= after the value")
            axis, named = self._name()
            parts = [self._leaf(axis, _FLIPPED[operator], value, at)]
            if (operator := self._operator()) is not None:
                at = self.token.at
                parts.append(self._leaf(axis, operator, self._value(), at))
            return parts[0] if len(parts) == 1 else Node("and", tuple(parts))
        axis, named = self._name()
        negated = self._take("not")
        if self._take("in"):
            found = self._within(axis)
            return Node("not", (found,)) if negated else found
        if negated:
            self._fail(self.token.at, "expected in after not")
        if self._take("is"):
            negated = self._take("not")
            special = self.token.text
            if not self._take("missing", "other"):
                self._fail(self.token.at, "expected missing or other after is")
            leaf = Leaf(axis.column, axis.named(special))
            return Node("not", (leaf,)) if negated else leaf
        operator = self._operator()
        if operator is None:
            if not axis.truth:
                self._fail(self.token.at, f"expected a comparison after {named.text}")
            return self._leaf(axis, "==", True, named.at)
        at = self.token.at
        return self._leaf(axis, operator, self._value(), at)

    def _within(self, axis: Axis) -> Predicate:
        if not self._take("("):
            self._fail(self.token.at, "expected a list such as (1, 2) after in")
        parts = []
        while True:
            at = self.token.at
            parts.append(self._leaf(axis, "==", self._value(), at))
            if not self._take(","):
                break
        if not self._take(")"):
            self._fail(self.token.at, "expected a comma or a closing parenthesis")
        return parts[0] if len(parts) == 1 else Node("or", tuple(parts))

    def _leaf(self, axis: Axis, operator: Operator, value: Literals, at: int) -> Leaf:
        try:
            steps = axis.compare(operator, value)
        except InvalidInput as error:
            self._fail(at, str(error).rstrip("."))
        return Leaf(axis.column, steps)

    def _operator(self) -> Operator | None:
        token = self.token
        if token.kind == "sign" and token.text in _FLIPPED:
            self.next += 1
            return token.text  # type: ignore[return-value]  # one of the six
        return None

    def _is_value(self) -> bool:
        token = self.token
        return token.kind in ("number", "text") or token.text in ("true", "false", "-")

    def _value(self) -> Literals:
        token = self.token
        if token.kind == "word":
            self._fail(token.at, f"expected a value; a text is quoted: '{token.text}'")
        if not self._is_value():
            self._fail(token.at, "expected a value: a number, a quoted text, true or false")
        self.next += 1
        if token.text == "-":
            number = self.token
            if number.kind != "number":
                self._fail(number.at, "expected a number after the minus sign")
            self.next += 1
            return -_number(number.text)
        if token.kind == "number":
            return _number(token.text)
        return token.text[1:-1] if token.kind == "text" else token.text == "true"

    def _name(self) -> tuple[Axis, _Token]:
        token = self.token
        if token.kind not in ("word", "quoted"):
            self._fail(token.at, "expected the name of a column")
        name = token.text.strip("`")
        axis = self.resolve(name)
        if axis is None:
            near = get_close_matches(name, self.names, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self.names)}"
            self._fail(token.at, f"no column is called {name} ({hint})")
        self.next += 1
        return axis, token


def _number(text: str) -> int | float:
    return float(text) if any(c in text for c in ".eE") else int(text)
