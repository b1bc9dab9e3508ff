"""Plots as SVG text: lines over two axes with units, readable in light and dark, and by those who cannot see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple, TypeAlias

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 30, 44
Placed: TypeAlias = Callable[[float, float], tuple[float, float]]
COLOURS = ("#0b7285", "#d9480f", "#5f3dc4", "#2b8a3e")


class Line(NamedTuple):
    """Some points, joined in their order."""

    name: str
    points: Sequence[tuple[float, float]]


def plot(lines: Sequence[Line], *, x: str, y: str, about: str) -> str:
    """The lines, from zero on both axes."""
    x_max = _round_up(max(px for line in lines for px, _ in line.points))
    y_max = _round_up(max(py for line in lines for _, py in line.points))

    def place(px: float, py: float) -> tuple[float, float]:
        across = LEFT + px / x_max * (WIDTH - LEFT - RIGHT)
        return round(across, 1), round(HEIGHT - BOTTOM - py / y_max * (HEIGHT - TOP - BOTTOM), 1)

    drawn = [_axes(x, y, x_max, y_max, place)]
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{a},{b}" for a, b in (place(*point) for point in line.points))
        dashes = "" if number == 0 else f' stroke-dasharray="{6 + 2 * number} 4"'
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        # Told apart by dashes and by name, and not by colour alone.
        at = LEFT + number * (WIDTH - LEFT - RIGHT) // len(lines)
        drawn.append(f'<line x1="{at}" y1="12" x2="{at + 26}" y2="12" stroke="{colour}" stroke-width="2"{dashes}/>')
        drawn.append(f'<text x="{at + 32}" y="16">{escape(line.name)}</text>')
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(about, quote=True)}">'
        f"<title>{escape(about)}</title>{''.join(drawn)}</svg>"
    )


def _axes(x: str, y: str, x_max: float, y_max: float, place: Placed) -> str:
    drawn = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        left, at = place(0, y_max * share)
        drawn.append(f'<line class="grid" x1="{left}" y1="{at}" x2="{WIDTH - RIGHT}" y2="{at}"/>')
        drawn.append(f'<text x="{left - 6}" y="{at + 4}" text-anchor="end">{_number(y_max * share)}</text>')
        across, low = place(x_max * share, 0)
        drawn.append(f'<text x="{across}" y="{low + 16}" text-anchor="middle">{_number(x_max * share)}</text>')
    drawn.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x)}</text>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turned = f'transform="rotate(-90 12 {middle})"'
    drawn.append(f'<text x="12" y="{middle}" text-anchor="middle" {turned}>{escape(y)}</text>')
    return "".join(drawn)


def _round_up(most: float) -> float:
    """The next of 1, 2, 4, 5 or 10 times a power of ten, so that quarters are short numbers."""
    if most <= 0:
        return 1.0
    power = 1.0
    while power > most:
        power /= 10
    while power * 10 <= most:
        power *= 10
    return next(step * power for step in (1, 2, 4, 5, 8, 10) if step * power >= most * 0.999999)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
