#!/usr/bin/env python3
"""Draws the decode lines of `deepinfer bench --json` as SVG.

usage: plot_sweep.py RECORDS.jsonl OUTDIR

Writes OUTDIR/speed_over_batch.svg and OUTDIR/speed_over_context.svg: tokens per second over the
number of sequences (a curve for each context depth) and over the depth (a curve for each number of
sequences), both axes logarithmic, with the least and greatest repetition as bars.
"""

import json
import math
import pathlib
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 80, 170, 50, 60
COLOURS = ["#1b6ca8", "#c8553d", "#3a7d44", "#8e5ea2", "#b8860b", "#2f4858"]


def read_speeds(path):
    """The "decode.speed" records of a file of JSON lines."""
    speeds = []
    for number, line in enumerate(pathlib.Path(path).read_text("utf-8").splitlines(), 1):
        try:
            record = json.loads(line)
        except ValueError as error:
            sys.exit(f"plot_sweep.py: {path}, line {number}: {error}")
        if record.get("name") == "decode.speed":
            speeds.append(record)
    if not speeds:
        sys.exit(f"plot_sweep.py: {path} holds no decode.speed record")
    return speeds


def curves_of(speeds, x, by):
    """{value of by: sorted points (x, median, min, max)}; a later record replaces an earlier."""
    curves = {}
    for record in speeds:
        params = record["params"]
        curves.setdefault(params[by], {})[params[x]] = (record["value"], record["min"],
                                                        record["max"])
    return {key: sorted((at, *values) for at, values in curve.items())
            for key, curve in sorted(curves.items())}


class Axis:
    """A logarithmic scale from values to pixels."""

    def __init__(self, values, start, end):
        low, high = math.log10(min(values)), math.log10(max(values))
        margin = max(0.05 * (high - low), 0.05)
        self.low, self.high = low - margin, high + margin
        self.start, self.end = start, end

    def __call__(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self):
        """1, 2 and 5 times powers of ten."""
        exponents = range(math.floor(self.low), math.ceil(self.high) + 1)
        candidates = [factor * 10.0**e for e in exponents for factor in (1, 2, 5)]
        return [t for t in candidates if self.low <= math.log10(t) <= self.high]


def text(x, y, content, anchor="middle", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(content)}</text>'


def frame(x_axis, y_axis, x_ticks, x_label):
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}" '
             'fill="none" stroke="#444"/>']
    for tick in x_ticks:
        parts.append(f'<path d="M{x_axis(tick):.1f} {TOP}V{bottom}" stroke="#ddd"/>')
        parts.append(text(x_axis(tick), bottom + 18, f"{tick:,.0f}"))
    for tick in y_axis.ticks():
        parts.append(f'<path d="M{LEFT} {y_axis(tick):.1f}H{right}" stroke="#ddd"/>')
        parts.append(text(LEFT - 8, y_axis(tick) + 4, f"{tick:,.10g}", "end"))
    parts.append(text((LEFT + right) / 2, HEIGHT - 16, x_label))
    middle = (TOP + bottom) / 2
    parts.append(text(20, middle, "tokens/s", extra=f' transform="rotate(-90 20 {middle:.1f})"'))
    return parts


def draw(title, curves, x_label, curve_label):
    """The SVG text of one chart."""
    points = [point for curve in curves.values() for point in curve]
    x_axis = Axis([p[0] for p in points], LEFT, WIDTH - RIGHT)
    y_axis = Axis([v for p in points for v in p[1:]], HEIGHT - BOTTOM, TOP)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
             f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             '<rect width="100%" height="100%" fill="white"/>',
             text(LEFT, 26, title, "start", ' font-size="15"')]
    parts += frame(x_axis, y_axis, sorted({p[0] for p in points}), x_label)
    for i, (key, curve) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        path = " ".join(f"{x_axis(x):.1f},{y_axis(median):.1f}" for x, median, _, _ in curve)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for x, median, low, high in curve:
            parts.append(f'<path d="M{x_axis(x):.1f} {y_axis(low):.1f}V{y_axis(high):.1f}" '
                         f'stroke="{colour}"/>')
            parts.append(f'<circle cx="{x_axis(x):.1f}" cy="{y_axis(median):.1f}" r="3.5" '
                         f'fill="{colour}"/>')
        y = TOP + 14 + 20 * i
        parts.append(f'<path d="M{WIDTH - RIGHT + 14} {y - 4}h20" stroke="{colour}" '
                     'stroke-width="2"/>')
        parts.append(text(WIDTH - RIGHT + 40, y, f"{curve_label} {key:,}", "start"))
    return "\n".join(parts + ["</svg>", ""])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    speeds = read_speeds(sys.argv[1])
    params = speeds[-1]["params"]
    title = f'{params["model"]}, {params["threads"]} threads, {params["target"]}: decode'
    folder = pathlib.Path(sys.argv[2])
    for name, x, by, x_label, curve_label in (
            ("speed_over_batch.svg", "batch", "context", "sequences", "context"),
            ("speed_over_context.svg", "context", "batch", "context, tokens", "sequences")):
        chart = draw(title, curves_of(speeds, x, by), x_label, curve_label)
        (folder / name).write_text(chart, "utf-8")


if __name__ == "__main__":
    main()
