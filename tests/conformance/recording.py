"""Records `penstock sandbox --check` as an animated SVG for the README.

    python3 tests/conformance/recording.py target/debug/penstock docs/images/sandbox-check.svg
"""

import html
import subprocess
import sys
import time

COLUMNS = 112
LINE = 20
LEFT, TOP, BOTTOM = 24, 64, 26
CHARACTER = 8.43
PROMPT = "$ penstock sandbox --check"
# The slowest step takes a fraction of a second; readers need more time.
SLOWER = 4
STYLE = """
    text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #d7dde5; white-space: pre }
    .ok { fill: #4ec98a; font-weight: 700 }
    .step { fill: #8ab4f8 }
    .prompt { fill: #9aa5b1 }
    .done { fill: #4ec98a }
    .line { animation: appear .2s both }
    @keyframes appear { from { opacity: 0 } }
    @media (prefers-reduced-motion: reduce) { .line { animation: none } }
"""


def record(program):
    """Each line that the check prints, with the seconds since its start."""
    start = time.monotonic()
    with subprocess.Popen([program, "sandbox", "--check"], stdout=subprocess.PIPE, text=True) as running:
        lines = [(time.monotonic() - start, line.rstrip()) for line in running.stdout]
    if running.returncode != 0:
        sys.exit(f"sandbox --check exited with {running.returncode}")
    return lines


def shortened(text):
    return text if len(text) <= COLUMNS else text[: COLUMNS - 1] + "…"


def spans(text):
    """The line with its mark and the name of its step highlighted."""
    text = shortened(text)
    if text.startswith("✓ "):
        mark, step, seen = text[:2], text[2:15], text[15:]
        return f'<tspan class="ok">{mark}</tspan><tspan class="step">{step}</tspan>{html.escape(seen)}'
    return f'<tspan class="done">{html.escape(text)}</tspan>'


def svg(lines):
    width = round(LEFT * 2 + COLUMNS * CHARACTER)
    height = TOP + LINE * len(lines) + LINE + BOTTOM
    dots = "".join(
        f'<circle cx="{LEFT + at * 20}" cy="22" r="6" fill="{colour}"/>'
        for at, colour in enumerate(["#ff5f57", "#febc2e", "#28c840"])
    )
    rows = [f'<text class="prompt" x="{LEFT}" y="{TOP}">{PROMPT}</text>']
    for at, (seconds, text) in enumerate(lines, 1):
        delay = f"{0.6 + seconds * SLOWER:.2f}s"
        rows.append(
            f'<text class="line" style="animation-delay:{delay}" x="{LEFT}" y="{TOP + at * LINE + 6}">{spans(text)}</text>'
        )
    body = "\n  ".join(rows)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title">
  <title id="title">A terminal: penstock sandbox --check performs {len(lines) - 1} steps over HTTP, and each succeeds.</title>
  <style>{STYLE}  </style>
  <rect width="{width}" height="{height}" rx="10" fill="#10161d"/>
  {dots}
  {body}
</svg>
"""


if __name__ == "__main__":
    program, target = sys.argv[1:]
    with open(target, "w", encoding="utf-8") as out:
        out.write(svg(record(program)))
