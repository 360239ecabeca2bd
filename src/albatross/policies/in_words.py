"""Parse policies as written on the command line: `alb-norm(norm_bound=10)`."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from albatross import checks, own_files
from albatross.compiling import parameters_type
from albatross.policies.catalogue import CATALOGUE
from albatross.protocol import init

_LONGEST = 10_000  # characters of a policy or a problem in words


class Unreadable(Exception):
    """The text is not a call with literals and policies as keywords."""


def call_parts(text: str) -> tuple[str, str]:
    """Return the name of a call, and the text after its opening parenthesis."""
    if len(text) > _LONGEST:
        raise ValueError(f"{checks.shown(text)} has {len(text):,} characters: at most {_LONGEST:,} are read")
    name, _, rest = text.partition("(")
    return name, rest


def split_names(text: str) -> list[str]:
    """Split at the commas outside parentheses.

    >>> split_names("alb-norm(norm_bound=10, scale=0.5), lints")
    ['alb-norm(norm_bound=10, scale=0.5)', 'lints']
    """
    names, depth, start = [], 0, 0
    for position, letter in enumerate(text + ","):
        depth += (letter == "(") - (letter == ")")
        if depth < 0 or (depth > 0 and position == len(text)):
            raise ValueError(f"the parentheses in {checks.shown(text)} do not match")
        if letter == "," and depth == 0:
            names.append(text[start:position].strip())
            start = position + 1
    return [name for name in names if name]


def build(text: str, known: Mapping[str, Any], *, files: bool = False) -> Any:
    """Make a policy from its name in the catalogue and, in parentheses, its non-default parameters.

    `known` supplies what the problem provides (sigma, norm_bound) for parameters that the text leaves out. A parameter
    that is itself a policy, or a tuple of policies, is written with class names: `ed2rb(bases=(LinUCB(),
    UCB(scale=0.5)))`. With `files`, a policy may be `my_file.py:MyPolicy`: this runs the file, so the text must come
    from somebody who may run programs here.

    >>> build("ucb(scale=0.5)", {"sigma": 0.7})
    UCB(sigma=0.7, delta=0.1, form='appendix', scale=0.5, ties='random')
    """
    name, rest = call_parts(text)
    if name == "oracle":
        if "oracle" not in known:
            raise ValueError("there is no oracle here: oracles exist only in `albatross compare`")
        return known["oracle"](lambda like, **more: build(like + text.removeprefix("oracle"), {**known, **more}))
    if files and own_files.is_own(name):
        kind = own_files.find_class(name, "policy", is_policy_class)
    elif name in CATALOGUE:
        kind = CATALOGUE[name].policy
    else:
        raise ValueError(f"there is no policy {checks.shown(name)}{_instead(name)}")
    given: dict[str, Any] = {}
    if rest:
        try:
            given = keywords(rest, lambda node: _value(node, known))
        except Unreadable:
            raise ValueError(f"cannot read {checks.shown(text)}: write it as {name}(parameter=value, ...)") from None
    return _make(name, kind, given, known)


def is_policy_class(kind: type) -> bool:
    """Return whether instances of a class are policies: it declares its parameters, and `init` is registered for it."""
    declared = dataclasses.is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_field_defaults"))
    return declared and init.dispatch(parameters_type(kind)) is not init.dispatch(object)


def _defaults(kind: Any) -> dict[str, Any]:
    """Return the parameters of a policy with their defaults; MISSING if there is none."""
    if dataclasses.is_dataclass(kind):
        return {field.name: field.default for field in dataclasses.fields(kind)}
    return {name: kind._field_defaults.get(name, dataclasses.MISSING) for name in kind._fields}


def _instead(name: str) -> str:
    """Suggest the policy that an unknown name was meant for, or list all names."""
    names = [*CATALOGUE, "oracle"]
    spellings = {entry.policy.__name__.lower(): known for known, entry in CATALOGUE.items()}
    spellings.update({known: known for known in names})
    words = [spellings.get(word) for word in name.lower().split()]
    if len(words) > 1 and None not in words:
        return f": separate names by commas, {','.join(map(str, words))}"
    close = difflib.get_close_matches(name.lower(), spellings, n=1, cutoff=0.7)
    if close:
        return f": did you mean {spellings[close[0]]}? `albatross policies` lists all"
    return f"; known are {', '.join(names[:-1])} and {names[-1]}"


def _make(name: str, kind: type, given: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    defaults = _defaults(kind)
    unknown = sorted(set(given) - set(defaults))
    if unknown:
        raise ValueError(f"{name} has no parameter {unknown[0]!r}; it has {', '.join(defaults) or 'none'}")
    filled = {key: value for key, value in known.items() if key in defaults and defaults[key] is not None}
    missing = [
        key for key, value in defaults.items() if value is dataclasses.MISSING and key not in {**filled, **given}
    ]
    if missing:
        raise ValueError(f"{name} needs {missing[0]!r}: write {name}({missing[0]}=...)")
    try:
        return kind(**{**filled, **given})
    except ValueError:
        raise
    except Exception as error:  # a number too large for a float, say; a user's own class may raise anything
        raise ValueError(f"cannot make {name} of these parameters: {error}") from None


def keywords(text: str, value: Callable[[ast.expr], Any]) -> dict[str, Any]:
    """Read the keywords of a call, up to and including the closing parenthesis; `value` reads each.

    >>> keywords("n_arms=2, theta=[1.0, -1.0])", literal)
    {'n_arms': 2, 'theta': [1.0, -1.0]}
    """
    try:
        with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
            call = ast.parse(f"dict({text}", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two of a text that is nested too deeply
        raise Unreadable from None
    return _keywords(call, value)


def _keywords(call: ast.expr, value: Callable[[ast.expr], Any]) -> dict[str, Any]:
    """Return the keywords of a call, which must have nothing else."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise Unreadable
    given = {keyword.arg: value(keyword.value) for keyword in call.keywords if keyword.arg is not None}
    if len(given) < len(call.keywords):  # one twice, or **
        raise Unreadable
    return given


def literal(node: ast.expr) -> Any:
    """Return a number, a text, or a list, tuple or dict of these."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError):
        raise Unreadable from None


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """Return a literal, a policy by its class name, or a tuple of these."""
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_value(part, known) for part in node.elts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        for entry in CATALOGUE.values():
            if entry.policy.__name__ == node.func.id:
                given = _keywords(node, lambda part: _value(part, known))
                return _make(node.func.id, entry.policy, given, known)
    return literal(node)
