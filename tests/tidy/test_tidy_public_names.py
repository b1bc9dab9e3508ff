"""What `import catchment as cm` offers: every name is there, documented and sorted out on purpose."""

from __future__ import annotations

import inspect

import catchment


def undocumented(name: str, thing: object) -> bool:
    """Whether a class or a function says nothing of itself. A constant is documented where it is defined."""
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return False
    said = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    # A dataclass without words gets its signature as its docstring.
    return not said or said.startswith(f"{getattr(thing, '__name__', name)}(")


def test_every_public_name_is_there_and_documented() -> None:
    assert sorted(name for name in catchment.__all__ if undocumented(name, getattr(catchment, name))) == []


def test_no_name_is_offered_twice() -> None:
    assert len(catchment.__all__) == len(set(catchment.__all__))


def test_what_says_nothing_is_found() -> None:
    class Silent: ...

    class Inherits(dict[str, int]): ...

    def says() -> None:
        """It does."""

    assert [undocumented("it", thing) for thing in (Silent, Inherits, says, 7)] == [True, True, False, False]
