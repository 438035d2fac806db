"""Puts what `turnout reproduce` has written into the documentation.

    python docs/reproduction.py runs/reproduce

The pages docs/reproduction.md and docs/leaderboard.md are written by hand, except for what stands
between their markers: an item each, which this copies from the folder that was given to the command as
--out. An item whose results are not in that folder keeps what its page has. The numbers behind the
tables (CSV) and the figures (SVG) go to docs/reproduction/.
"""

import re
import shutil
import sys
from pathlib import Path

PAGE = Path(__file__).parent / "reproduction.md"
PAGES = (PAGE, PAGE.with_name("leaderboard.md"))
BLOCK = re.compile(
    r"<!-- results: (?P<paper>\w+) (?P<item>[\w-]+) (?P<scale>\w+) -->\n"
    r"(?P<body>.*?)<!-- end of results -->",
    re.DOTALL,
)
OVERVIEW = re.compile(r"(<!-- overview -->\n).*?(<!-- end of overview -->)", re.DOTALL)
NOT_RUN = "Not run yet"
HEADS = ("Item", "Scale", "Cells", "Matches", "Same order", "Differs", "Minutes of one process")


def update(page: str, results: Path, evidence: Path) -> str:
    """The page with the results that are in the folder; their data and figures go to `evidence`."""
    page = BLOCK.sub(lambda found: _block(found, results, evidence), page)
    return OVERVIEW.sub(lambda found: found[1] + overview(page) + found[2], page)


def _block(found: re.Match[str], results: Path, evidence: Path) -> str:
    paper, item, scale, body = found.group("paper", "item", "scale", "body")
    stem = f"{item}-{scale}"
    section = results / paper / f"{stem}.md"
    if section.exists():
        # A section of this page, and its figure where this page finds it.
        body = re.sub(r"^## (.*?): (.*)", r"### \1\n\n**\2**", section.read_text(encoding="utf-8"))
        body = body.replace(f"]({stem}.svg)", f"]({evidence.name}/{paper}/{stem}.svg)")
        (evidence / paper).mkdir(parents=True, exist_ok=True)
        links = []
        for end, name in ((".csv", "CSV"), ("-cells.csv", "a line for each cell"), (".svg", "")):
            if (file := section.with_name(stem + end)).exists():
                shutil.copyfile(file, evidence / paper / file.name)
                links += [f"[{name}]({evidence.name}/{paper}/{file.name})"] if name else []
        body += f"\n{' · '.join(links)}\n"
    elif not body.strip():
        command = f"turnout reproduce {paper} {item} --scale {scale}"
        body = f"### {paper} {item}\n\n{NOT_RUN}: `{command}`.\n"
    return f"<!-- results: {paper} {item} {scale} -->\n{body}<!-- end of results -->"


def overview(page: str) -> str:
    """All items in a table: how many of their numbers match."""
    rows = [HEADS, ("---",) * 2 + ("---:",) * (len(HEADS) - 2)]
    for found in BLOCK.finditer(page):
        paper, item, scale, body = found.group("paper", "item", "scale", "body")
        link = f"[{paper} {item}](#{paper}-{item})"
        verdicts = re.search(
            r"^Verdicts of (\d+): (\d+) matches \(=\), (\d+) same order \(~\), (\d+) differs",
            body,
            re.MULTILINE,
        )
        took = re.search(r"([\d.]+) minutes of one process", body)
        numbers = verdicts.groups() if verdicts else ("", NOT_RUN.lower(), "", "")
        if verdicts is None and NOT_RUN not in body:
            numbers = ("", "nothing printed", "", "")
        rows.append((link, scale, *numbers, took[1] if took else ""))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("usage: python docs/reproduction.py FOLDER (what --out was, e.g. runs/reproduce)")
    for path in PAGES:
        text = update(path.read_text(encoding="utf-8"), Path(sys.argv[1]), PAGE.with_suffix(""))
        path.write_text(text, encoding="utf-8")
