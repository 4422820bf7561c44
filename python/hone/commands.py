"""The command's verbs as functions: what they print with --json, as dicts (docs/reference/json-schemas.md).

An option is an argument of the same name, `_` for `-`: `max_seconds=5` is `--max-seconds 5`, True a switch, a list the
option several times, a dict such as `shape={"x": (1, 3, 224, 224)}` its NAME=VALUE once for each entry. Times are in
the units that their names end in (`_ms`, `_s`).
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, Tuple, Union

from .errors import MissingError, of_exit, refusal

PathLike = Union[str, "os.PathLike[str]"]


def command() -> str:
    """The path of the command `hone`: HONE_COMMAND, this package's own, or the one in PATH."""
    import shutil  # here and below: sessions need none of these, and they are a tenth of this package's import

    own = os.path.join(os.path.dirname(__file__), "bin", "hone")
    found = os.environ.get("HONE_COMMAND") or (own if os.path.exists(own) else shutil.which("hone"))
    if not found:
        raise MissingError("there is no command hone in this package or in PATH (HONE_COMMAND names it)", exit_code=4)
    return found


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            dims = "x".join(str(n) for n in part) if isinstance(part, (list, tuple)) else str(part)
            yield f"{name}={dims}"
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _values(part)
    else:
        yield os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _options(options: Dict[str, Any]) -> List[str]:
    words: List[str] = []
    for name, value in options.items():
        word = "--" + name.replace("_", "-")
        if value is True:
            words.append(word)
        elif value is not None and value is not False:
            for text in _values(value):
                words += [word, text]
    return words


def _path(given: Any) -> str:
    if not isinstance(given, (str, os.PathLike)):
        raise refusal("", "this function takes files", expected="a path", got=type(given).__name__)
    return os.fsdecode(given)


def _document(verb: str, files: List[PathLike], options: Dict[str, Any], verdicts: Tuple[int, ...] = ()) -> Dict[str, Any]:
    import json
    import subprocess

    words = [command(), verb, *[_path(f) for f in files], *_options(options), "--json"]
    if any("\0" in word for word in words):
        raise refusal("", "there is a zero byte in a path or an option")
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0 or done.returncode in verdicts and done.stdout.strip():
        document: Dict[str, Any] = json.loads(done.stdout)
        return document
    raise of_exit(done.returncode, done.stderr)


def profile(model: PathLike, **options: Any) -> Dict[str, Any]:
    """Measures every layer: the record of the runs (facts v1) with its findings. Options: `hone profile --help`."""
    return _document("profile", [model], options)


def optimize(model: PathLike, output: PathLike, **options: Any) -> Dict[str, Any]:
    """Writes the rewritten model (or a saved plan, *.hone) to output, and tells what was done."""
    return _document("optimize", [model], {"output": _path(output), **options})


def verify(model: PathLike, other: Union[PathLike, None] = None, **options: Any) -> Dict[str, Any]:
    """Proves that other (or model as hone runs it) gives model's answers. The verdict is in the document: a negative
    one, or none, is no exception."""
    return _document("verify", [model] if other is None else [model, other], options, (1, 5))


def diagnose(*files: PathLike, **options: Any) -> Dict[str, Any]:
    """Finds what is slow in profiles of other tools (files of one run): findings with cause, evidence and gain."""
    return _document("diagnose", list(files), options)
