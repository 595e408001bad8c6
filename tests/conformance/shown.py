"""What the operator's pages show: blocks of shell, SQL statements, and command lines inside of sentences."""

import re
from pathlib import Path

from programs import program

DOCS = Path(program("DOCS_DIR"))
DEPLOY = Path(program("DEPLOY_DIR"))
NAMES = ("operating", "going-live", "provisioning", "verify", "high-availability", "scaling")
# In this order their blocks are run.
PAGES = [DEPLOY / "README.md", *(DOCS / f"{name}.md" for name in NAMES)]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`]+)`")
COMMAND = re.compile(r"(?:penstock|pools-service|gate-service|psql|pg_dump|pg_restore) \S")
STATEMENT = re.compile(r"(?:SELECT|INSERT|UPDATE|DELETE|ALTER|CREATE|GRANT|REVOKE|WITH) \S")


def blocks(text, language="sh"):
    return [body for kind, body in FENCED.findall(text) if kind == language]


def spans(page):
    """Code inside of sentences."""
    return [" ".join(found.split()) for found in SPAN.findall(FENCED.sub("", page.read_text()))]


def statements():
    """Each SQL statement of the documents, as page and text. A line of a comment is not part of it."""
    for page in sorted(DOCS.glob("*.md")):
        for block in blocks(page.read_text(), "sql"):
            text = re.sub(r"^--.*\n", "", block, flags=re.MULTILINE)
            yield from ((page.name, statement.strip()) for statement in text.split(";") if statement.strip())
        yield from ((page.name, span) for span in spans(page) if STATEMENT.match(span))


def commands():
    """Each command line inside of a sentence, as page and text."""
    for page in PAGES:
        yield from ((page.name, span) for span in spans(page) if COMMAND.match(span))


def section(page, heading):
    """The text from a heading to the next one of the same depth or above."""
    text = page.read_text()
    depth, start = len(heading.split()[0]), text.index(f"\n{heading}\n") + len(heading) + 2
    # A comment inside of a block is no heading.
    outside = FENCED.sub(lambda block: " " * len(block[0]), text)
    end = re.compile(rf"^#{{1,{depth}}} ", re.MULTILINE).search(outside, start)
    return text[start : end.start() if end else len(text)]
