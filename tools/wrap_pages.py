#!/usr/bin/env python3
"""Wraps the prose of pages at 120 columns: paragraphs and list items with a longer line. Tables, code and headings stay.
usage: wrap_pages.py FILE.md...   rewrites the files that need it and prints their names
"""
import re
import sys

WIDTH = 120
ITEM = re.compile(r"( *)([-*]|\d+\.) +")
# What would begin another block at the start of a line.
BLOCK = re.compile(r"([-*+]|#+|\d+\.)$|[|>]")


def words(text):
    """Code between backquotes is one word unless it is long."""
    parts = re.split(r"(`[^`]*`)", text)
    parts = [p.replace(" ", "\0") if p.startswith("`") and len(p) <= 60 else p for p in parts]
    return "".join(parts).split()


def wrap(lines):
    item = ITEM.match(lines[0])
    first = item.group(0) if item else re.match(" *", lines[0]).group(0)
    indent = " " * len(first)
    text = " ".join([lines[0][len(first):]] + [line.strip() for line in lines[1:]])
    out, line = [], first
    for word in words(text):
        fresh = line in (first, indent)
        if not fresh and len(line) + 1 + len(word) > WIDTH and not BLOCK.match(word):
            out.append(line)
            line, fresh = indent, True
        line += word if fresh else " " + word
    out.append(line)
    return [line.replace("\0", " ") for line in out]


def page(text):
    out, block, code = [], [], False

    def flush():
        out.extend(wrap(block) if any(len(line) > WIDTH for line in block) else block)
        block.clear()

    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        plain = code or fence or not line.strip() or line[0] in "#|<" or (line.startswith("    ") and not block)
        if plain or ITEM.match(line):
            flush()
        (out if plain else block).append(line)
        code ^= fence
    flush()
    return "\n".join(out)


for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as f:
        old = f.read()
    new = page(old)
    if new != old:
        with open(name, "w", encoding="utf-8") as f:
            f.write(new)
        print(name)
