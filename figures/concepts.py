# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Draws the two pictures that explain On-Ramp: docs/img/onramp.svg (README.md) and docs/img/concepts.svg (docs/concepts.md).

Usage: concepts.py [DIRECTORY]     default: docs/img
The numbers of the first are those of docs/results/incast.md. A test compares both files with what this script draws.
The ground is part of a picture, so that it is readable on a light and on a dark page. Needs no package.
"""

import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

GROUND, FRAME = "#fbfaf7", "#c9c5ba"
INK, QUIET = "#1f2328", "#59616b"
HOST, HOST_EDGE = "#ffffff", "#6b7280"
PACKET, LOST, BACK, CLOCK = "#2563a8", "#c2410c", "#0f766e", "#8a6d1a"
FONT = "font-family=\"'DejaVu Sans', 'Segoe UI', Helvetica, Arial, sans-serif\""


class Picture:
    """SVG elements, in the order in which they are painted."""

    def __init__(self, width, height, about, top=0):
        self.width, self.height, self.about, self.top = width, height, about, top
        self.parts = []

    def add(self, part):
        self.parts.append(part)

    def box(self, x, y, width, height, fill=HOST, edge=HOST_EDGE, round_=6, dash=""):
        dash = f' stroke-dasharray="{dash}"' if dash else ""
        self.add(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{round_}" fill="{fill}" '
            f'stroke="{edge}" stroke-width="1.5"{dash}/>'
        )

    def text(self, x, y, words, size=15, fill=INK, anchor="start", bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.add(f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}" text-anchor="{anchor}"{weight}>{escape(words)}</text>')

    def arrow(self, points, colour=INK, dash="", width=2):
        line = " ".join(f"{x},{y}" for x, y in points)
        dash = f' stroke-dasharray="{dash}"' if dash else ""
        self.add(
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{width}"{dash} '
            f'marker-end="url(#end-{colour[1:]})"/>'
        )

    def packets(self, x, y, number, step=13, colour=PACKET, size=10):
        for at in range(number):
            self.add(f'<rect x="{x + at * step}" y="{y}" width="{size}" height="{size * 1.6:g}" rx="2" fill="{colour}"/>')

    def number(self, x, y, number):
        self.add(f'<circle cx="{x}" cy="{y}" r="12" fill="{INK}"/>')
        self.text(x, y + 5, str(number), 14, GROUND, "middle", True)

    def svg(self):
        colours = (INK, PACKET, LOST, BACK, CLOCK)
        ends = "".join(
            f'<marker id="end-{colour[1:]}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path d="M0,0 L10,5 L0,10 z" fill="{colour}"/></marker>'
            for colour in colours
        )
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {self.top} {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" role="img" {FONT}>'
        )
        ground = (
            f'<rect x="1" y="{self.top + 1}" width="{self.width - 2}" height="{self.height - 2}" rx="10" fill="{GROUND}" '
            f'stroke="{FRAME}" stroke-width="1.5"/>'
        )
        lines = [head, f"<title>{escape(self.about)}</title>", f"<defs>{ends}</defs>", ground, *self.parts, "</svg>"]
        return "\n".join(lines) + "\n"


def recorded(case):
    """Completion times of requests in us, of the rack's table: mean, p50 and p99."""
    table = (ROOT / "docs/results/incast.md").read_text().split("```text\n")[1]
    row = next(line.split() for line in table.splitlines() if line.split()[:1] == [case])
    return [float(value) for value in row[1:4]]


def time(us):
    """A time with a unit that suits it, to two or three digits."""
    return f"{us / 1000:.0f} ms" if us >= 10_000 else f"{us:.0f} us"


def half(picture, x, title, held, queued, lost, verdict):
    """Four senders, the switch and the receiver of one case."""
    picture.text(x, 38, title, 18, bold=True)
    switch, receiver = x + 192, x + 352
    for row in range(4):
        y = 62 + row * 50
        picture.box(x, y, 124, 38)
        picture.text(x + 10, y + 24, "sender", 13, QUIET)
        picture.packets(x + 66, y + 11, held)
        picture.arrow([(x + 126, y + 19), (switch - 4, 112 + row * 17)], PACKET)
    picture.box(switch, 98, 112, 80)
    picture.text(switch + 56, 92, "switch", 13, QUIET, "middle")
    picture.packets(switch + 9, 130, queued)
    if lost:
        picture.packets(switch + 30, 196, 3, 18, LOST)
        picture.text(switch + 56, 232, "dropped", 13, LOST, "middle")
    picture.arrow([(switch + 114, 138), (receiver - 4, 138)], PACKET)
    picture.box(receiver, 112, 72, 52)
    picture.text(receiver + 36, 143, "receiver", 13, QUIET, "middle")
    picture.text(x, 288, verdict, 16, bold=True)


def readme():
    """The same incast twice: where the packets wait, and what it costs."""
    (_, _, plain), (_, _, ours) = recorded("fq"), recorded("final")
    picture = Picture(960, 324, "Without On-Ramp the switch's queue overflows; with it packets wait at their senders")
    half(picture, 22, "Plain Linux (fq): packets wait in the switch", 0, 7, True, f"slowest 1 % of answers: above {time(plain)}")
    picture.add(f'<line x1="487" y1="20" x2="487" y2="294" stroke="{FRAME}" stroke-width="1.5"/>')
    half(picture, 506, "onramp (final): packets wait at the senders", 4, 2, False, f"slowest 1 % of answers: above {time(ours)}")
    back = [(894, 168), (894, 258), (568, 258), (568, 253)]
    picture.arrow(back, BACK, "6 4")
    picture.text(734, 250, "OR-ACK: when a byte arrived", 13, BACK, "middle")
    picture.text(22, 310, "8 servers (four shown) answer one host at once, 10 Gbit/s; real Linux TCP in the virtual rack, docs/results/incast.md", 12, QUIET)
    return picture


def concepts():
    """Hold, OR-ACK and clock on the path of a packet."""
    picture = Picture(960, 430, "How a sender learns the one-way delay and holds packets", 36)
    # Hosts and the switch between them.
    picture.box(24, 56, 330, 232)
    picture.text(40, 82, "sending host", 16, bold=True)
    picture.box(40, 98, 80, 44, "#eef2f7")
    picture.text(80, 125, "TCP", 15, anchor="middle")
    picture.box(152, 98, 184, 96, "#eaf1fa", PACKET)
    picture.text(164, 120, "edge (qdisc, eBPF)", 14, PACKET)
    picture.packets(168, 132, 6, 15)
    picture.text(164, 184, "holds the flow", 14, PACKET, bold=True)
    picture.box(152, 228, 184, 44, "#e8f4f2", BACK)
    picture.text(164, 255, "orack (tcx, eBPF)", 14, BACK)
    picture.arrow([(121, 120), (149, 120)], INK)
    picture.arrow([(244, 226), (244, 198)], BACK)
    picture.text(252, 217, "delay", 13, BACK)
    picture.box(436, 98, 130, 76)
    picture.text(501, 90, "switch, unchanged", 14, QUIET, "middle")
    picture.packets(450, 128, 7, 15)
    picture.text(501, 196, "queue = delay", 14, QUIET, "middle")
    picture.box(648, 56, 288, 232)
    picture.text(664, 82, "receiving host", 16, bold=True)
    picture.box(664, 98, 150, 44, "#e8f4f2", BACK)
    picture.text(676, 125, "orack (tcx)", 14, BACK)
    picture.box(850, 98, 70, 44, "#eef2f7")
    picture.text(885, 125, "TCP", 15, anchor="middle")
    picture.arrow([(338, 130), (432, 130)], PACKET, width=3)
    picture.arrow([(568, 130), (660, 130)], PACKET, width=3)
    picture.arrow([(816, 120), (846, 120)], INK)
    picture.arrow([(739, 144), (739, 250), (340, 250)], BACK, "7 5", 2.5)
    picture.text(500, 242, "OR-ACK, 78 bytes", 14, BACK, "middle")
    # One clock.
    picture.box(24, 306, 912, 40, "#f8f1dc", CLOCK)
    picture.text(480, 331, "fleet time: one clock for all hosts, by probes between them (Huygens)", 15, CLOCK, "middle")
    for x in (96, 740):
        picture.arrow([(x, 304), (x, 291)], CLOCK)
    steps = [
        (380, 108, 1), (620, 108, 2), (620, 228, 3), (136, 214, 4), (136, 170, 5),
    ]
    for x, y, number in steps:
        picture.number(x, y, number)
    words = [
        ("1", "a segment leaves; its time is kept"),
        ("2", "it arrives; the receiver reads fleet time"),
        ("3", "the OR-ACK carries that time back"),
        ("4", "delay = arrival - departure"),
        ("5", "delay above threshold T: hold the flow for about delay - T"),
    ]
    for at, (number, text) in enumerate(words):
        x, y = 44 + (at % 2) * 400, 376 + (at // 2) * 32
        picture.number(x, y - 5, number)
        picture.text(x + 22, y, text, 15)
    return picture


def main():
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/img"
    directory.joinpath("onramp.svg").write_text(readme().svg())
    directory.joinpath("concepts.svg").write_text(concepts().svg())


if __name__ == "__main__":
    main()
