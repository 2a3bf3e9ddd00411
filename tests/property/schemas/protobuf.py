"""Protobuf files."""

from hypothesis import strategies as st

SCALARS = (
    *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64"),
    *("sfixed32", "sfixed64", "bool", "string", "bytes"),
)
KEYS = ("int32", "string", "bool", "sfixed64")
WORDS = ("a", "b_c", "d1", "message", "Foo", "p", "M")


class File:
    """Writes a file, drawing as it goes. Names are few, so that many are the same in different places."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._types: list[str] = []

    def text(self) -> str:
        package = self._draw(st.sampled_from(["", "package p;", "package p.M;"]))
        scope = package.removeprefix("package").strip(" ;")
        messages = [self._message(f"T{number}", scope, 2) for number in range(self._draw(st.integers(1, 3)))]
        return f'syntax = "proto3"; {package} ' + " ".join(messages)

    def _message(self, name: str, scope: str, depth: int) -> str:
        inner = f"{scope}.{name}".lstrip(".")
        self._types.append(inner)
        words = self._draw(st.lists(st.sampled_from(WORDS), max_size=5, unique=True))
        parts = [self._member(word, number * 5 + 1, inner, depth) for number, word in enumerate(words)]
        return f"message {name} {{ {' '.join(self._draw(st.permutations(parts)))} }}"

    def _member(self, word: str, number: int, scope: str, depth: int) -> str:
        match self._draw(st.integers(0, 7 if depth else 5)):
            case 0:
                return f"map<{self._draw(st.sampled_from(KEYS))}, {self._type()}> {word} = {number};"
            case 1:
                fields = " ".join(f"{self._type()} {word}_{at} = {number + at};" for at in range(3))
                return f"oneof {word} {{ {fields} }}"
            case 2:
                return f"enum {word} {{ {word}_X = 0; {word}_Y = {number}; }}"
            case 3:
                return f'reserved {number} to {number + 2}; reserved "{word}";'
            case 6 | 7:
                return self._message(word, scope, depth - 1)
        label = self._draw(st.sampled_from(["", "repeated ", "optional "]))
        options = self._draw(
            st.sampled_from(["", " [deprecated = true]", f' [json_name = "x{number}\\"\\n"]'])
        )
        return f"{label}{self._type()} {word} = {number}{options};"

    def _type(self) -> str:
        if self._draw(st.booleans()):
            return self._draw(st.sampled_from(SCALARS))
        return f".{self._draw(st.sampled_from(self._types))}"


@st.composite
def files(draw: st.DrawFn) -> str:
    return File(draw).text()
