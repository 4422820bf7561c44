"""python -m hone: the command hone."""

import os
import sys

from .commands import command
from .errors import MissingError


def main() -> None:
    try:
        path = command()
    except MissingError as e:
        sys.exit(f"hone: error: {e}")
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
