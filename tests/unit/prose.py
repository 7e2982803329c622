"""Measures of prose: what a text has too long, too full of numbers, or in words to avoid."""

import re
from pathlib import Path

import nbformat

LIMITS = {"sentence": 35, "average": 18, "paragraph": 90, "row": 160, "numbers": 3, "page": 1200, "all": 49_000}
# Words to avoid, each with what to write instead.
AVOIDED = {
    r"trainings": "training runs, or seeds",
    r"from random weights": "from scratch",
    r"(?<!there )(?<!that )(?:is|are) no (?!longer|more|less|later|earlier|fewer|larger|smaller|one\b)": "is not a",
    r", too\b": "also, before the verb",
    r"\bbeside\b": "next to, compared with, in addition to, under",
    r"in the (?:mean|median)\b": "on average; the median",
    r"(?:by|without|of|within|\w's) chance\b": "random, deterministic, within noise",
    r"\btold\b": "given, reported, configured",
    r"\blevel with\b": "on par with",
    r"\bgaps? of \d": "mean interarrival time",
    r"\b(?:so|as) many(?! \w+(?: \w+)? as)": "N; the number of",
    r"\baim(?:s|ed)?\b": "target",
    r"\bleast (?:and most|to largest)": "minimum to maximum",
    r"\bcom(?:es?|ing) to a job\b|\bof coming\b|\bon coming\b|costs? of coming|\bthat comes\b": "executor-entry cost",
    r"\bclairvoyant\b": "offline, with future knowledge",
    r"\btwins?\b": "control policy",
    r"(?<!\w)priced\b": "with prices, or the dual price",
    r"\bsooner\b": "earlier",
    r"\bgo(?:es)? on\b": "continue",
    r"\bstands? (?:still|under|in)\b": "blocks; is listed in",
    r"\b(?:say|tell)s? (?:what|which|how|why)\b": "a noun",
    r"\blikeliest\b": "greedy, most probable",
    r"\bcopies of nodes\b": "task duplication",
    r"\bunequal executors?\b": "heterogeneous executors",
    r"\bper cent\b": "%",
    r"\d \$": "$ before the amount",
    r"\bwarm start": "pre-trained by imitation",
}
_AVOIDED = {re.compile(pattern, re.IGNORECASE): instead for pattern, instead in AVOIDED.items()}


def avoided(text: str) -> list[str]:
    """Words to avoid in a text, each with what to write instead and the words around it."""
    return [
        f"'{hit[0].strip()}' ({instead}): {' '.join(text[max(0, hit.start() - 30) : hit.end() + 30].split())}"
        for pattern, instead in _AVOIDED.items()
        for hit in pattern.finditer(text)
    ]


def read(path: Path) -> str:
    """Text of a page, or of the text cells of a notebook."""
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    cells = nbformat.read(path, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def _without_code(text: str) -> str:
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^( *)(```+|~~~+|\$\$).*?^\1\2[ \t]*$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)


def _plain(text: str) -> str:
    """Words as a person reads them: links without their targets, code as one word, without marks."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"https?://\S+", "URL", text)
    text = re.sub(r"\$[^$\d][^$]*\$", "X", text)
    text = re.sub(r"(?<![\w`])`[^`]+`", "CODE", text)
    return re.sub(r"\*\*|__|<[^>]+>", "", text)


def blocks(text: str) -> list[str]:
    """Paragraphs and items of lists, each as one line of plain text; no headings, tables or code."""
    found: list[str] = []
    fresh = True
    for line in _without_code(text).split("\n"):
        if not line.strip() or line.startswith(("#", "    ", "|", ">|")):
            fresh = True
            continue
        begins = re.match(r"\s*(?:[-*+]|\d+\.)\s+|\s*>\s?|:\s+", line)
        rest = line[begins.end() :] if begins else line
        if fresh or begins:
            found.append(rest.strip())
        else:
            found[-1] += " " + rest.strip()
        fresh = False
    return [_plain(each) for each in found]


def wrapped(text: str) -> list[str]:
    """Lines of paragraphs that end inside a sentence."""
    lines = _without_code(text).split("\n")
    plain = [bool(re.match(r"[\w*`\[(“\"α-ω]", line)) and not re.match(r"\d+\. |\* |\[!", line) for line in lines]
    inside = [line for line, now, then in zip(lines, plain, plain[1:], strict=False) if now and then]
    return [line for line in inside if not re.search(r"[.!?:][)*\"”`_]*$", line)]


def words(text: str) -> list[str]:
    """Words of a page, those of tables included, code not."""
    return re.sub(r"^[ |:-]+$|\|", " ", _plain(_without_code(text)), flags=re.MULTILINE).split()


def sentences(block: str) -> list[str]:
    ends = re.sub(r"\b(e\.g|i\.e|vs|cf|al|Fig|Eq|approx|no)\. ", r"\1 ", block)
    return [each for each in re.split(r"(?<=[.!?:])[\")*]*\s+(?=[\"(*]*[A-Z0-9])", ends) if each.split()]


def numbers(sentence: str) -> list[str]:
    """Numbers of a sentence; an interval in brackets belongs to its value, a range is one number, a reference none."""
    text = re.sub(r"\[[^\]]*\]|\([^)]*\bCI\b[^)]*\)", "", sentence)
    text = re.sub(
        r"(?i)\b(?:figures?|tables?|sections?|appendix|equations?|eq|seeds?|python|spark|version|lines?) [\d§.]+",
        "",
        text,
    )
    text = re.sub(r"(\d) ?(?:to|and|–|-|±|of|×|x) ?(?=[−\d])", r"\1", text)
    return re.findall(r"(?<![\w.,])[−+-]?\d[\d.,]*", text)


def faults(text: str, *, page: bool = True) -> list[str]:
    """Everything that a text has against the style guide, one line each; `page`: the length of the whole counts."""
    found = []
    lengths = []
    total = 0
    for block in blocks(text):
        size = len(block.split())
        total += size
        if size > LIMITS["paragraph"]:
            found.append(f"a paragraph of {size} words: {block[:60]}")
        for sentence in sentences(block):
            size = len(sentence.split())
            lengths.append(size)
            if size > LIMITS["sentence"]:
                found.append(f"a sentence of {size} words: {sentence[:60]}")
            if len(each := numbers(sentence)) > LIMITS["numbers"]:
                found.append(f"{len(each)} numbers in a sentence: {sentence[:60]}")
    for line in _without_code(text).split("\n"):
        if line.lstrip().startswith("|") and len(re.sub(r"\]\([^)]*\)", "]", line)) > LIMITS["row"]:
            found.append(f"a row of {len(line)} characters: {line[:60]}")
        found += avoided(_plain(line))
    if page and lengths and sum(lengths) > LIMITS["average"] * len(lengths):
        found.append(f"{sum(lengths) / len(lengths):.1f} words per sentence on average")
    if page and (size := len(words(text))) > LIMITS["page"]:
        found.append(f"a page of {size} words")
    return found
