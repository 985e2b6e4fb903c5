"""Reads the methods of a class from a C++ header, as far as the tests of completeness need it.

Understood: comments, directives over several lines, declarations over several lines, default arguments, functions as
parameters, bodies in the class. Conditions are understood only where they compare `STRAGGLER_TORCH` with a number.
"""

import re
from collections.abc import Callable
from typing import NamedTuple


class Method(NamedTuple):
    name: str
    parameters: int

    def __str__(self) -> str:
        return f"{self.name}/{self.parameters}"


def without_comments(text: str) -> str:
    """The text without comments, and with empty strings in place of all string literals."""
    kept = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    return kept.sub(lambda found: '""' if found[0].startswith('"') else " ", text)


def preprocessed(text: str, straggler_torch: int) -> str:
    """The lines that are compiled against this torch (215 for 2.15), without directives."""
    lines: list[str] = []
    active = [True]
    for line in text.replace("\\\n", " ").split("\n"):
        directive = line.strip()
        if not directive.startswith("#"):
            lines += [line] if all(active) else []
        elif directive.startswith(("#if ", "#ifdef ", "#ifndef ")):
            condition = re.fullmatch(r"#if STRAGGLER_TORCH (>=|<) (\d+)", directive)
            holds = condition is None or (straggler_torch >= int(condition[2])) == (condition[1] == ">=")
            active.append(holds)
        elif directive.startswith("#else"):
            active[-1] = not active[-1]
        elif directive.startswith("#endif"):
            active.pop()
    return "\n".join(lines)


def balanced(text: str, begin: int) -> int:
    """The place behind what closes the brace or parenthesis at `begin`."""
    opening, closing = text[begin], {"{": "}", "(": ")"}[text[begin]]
    depth = 0
    for place in range(begin, len(text)):
        depth += {opening: 1, closing: -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    raise ValueError(f"a {opening} is not closed")


def without(nested: str, text: str) -> str:
    """The text without what matches `nested`, from the inside out."""
    while (shorter := re.sub(nested, "", text)) != text:
        text = shorter
    return text


def declarations(text: str, name: str) -> list[str]:
    """The declarations in the class `name`, without bodies and without what is in classes of its own.

    Raises:
        ValueError: the class is not defined in the text.
    """
    head = re.search(rf"\bclass\s+(?:\w+\s+)*{name}\b(?:\s+final)?(?:\s*:[^;{{]*)?\{{", text)
    if head is None:
        raise ValueError(f"class {name} is not defined here")
    body = text[head.end() : balanced(text, head.end() - 1) - 1]
    found, current, parentheses, place = [], "", 0, 0
    while place < len(body):
        letter = body[place]
        parentheses += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "{" and parentheses == 0:
            place = balanced(body, place)
            letter = ";"
        else:
            place += 1
        if letter == ";" and parentheses == 0:
            found.append(re.sub(r"\b(?:public|protected|private)\s*:(?!:)", " ", current).strip())
            current = ""
        else:
            current += letter
    return [declaration for declaration in found if declaration]


def method_of(declaration: str) -> Method | None:
    """The method that a declaration is of; None if it is of something else, or of a destructor."""
    plain = without(r"<[^<>]*>|\{[^{}]*\}", declaration)
    head = re.match(r"[^(]*?(~?\w+)\s*\(", plain)
    if head is None or head[1].startswith("~"):
        return None
    begin = head.end()
    parameters = without(r"\([^()]*\)", plain[begin : balanced(plain, begin - 1) - 1])
    return Method(head[1], parameters.count(",") + 1 if parameters.strip() else 0)


def methods(text: str, name: str, which: Callable[[str], bool]) -> set[Method]:
    """The methods of the class whose declaration is one of `which`."""
    found = (method_of(declaration) for declaration in declarations(text, name) if which(declaration))
    return {method for method in found if method is not None}


def is_new_virtual(declaration: str) -> bool:
    return re.match(r"virtual\b", declaration) is not None


def is_override(declaration: str) -> bool:
    return re.search(r"\)[^()]*\boverride\b[^()]*$", declaration) is not None


def body_of(text: str, name: str) -> str:
    """The body of the function `name`, as `Class::method` or, within its class, `method`.

    Raises:
        ValueError: it is not defined in the text.
    """
    for head in re.finditer(rf"(?<![\w:>.]){re.escape(name)}\(", text):
        begin = re.compile(r"[;{]").search(text, balanced(text, head.end() - 1))
        if begin is not None and begin[0] == "{":
            return text[begin.start() : balanced(text, begin.start())]
    raise ValueError(f"{name} is not defined here")
