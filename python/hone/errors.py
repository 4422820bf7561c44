"""What can go wrong, as exceptions: one class for each status of the library (include/hone/status.h)."""

from __future__ import annotations

import ctypes as c

from ._library import Error, library, text


class HoneError(Exception):
    """An error of hone. `str()` is the library's one line, with its hint.

    status     short name: "bad input", "unsupported"...
    exit_code  that the command ends with for the same error
    what, where, expected, got, hint   the parts of the line; "" where there is none. The line of `profile`, `optimize`,
                                       `verify` and `diagnose` is the command's, and whole in `what`
    """

    def __init__(self, message: str, *, status: str = "", exit_code: int = 2, what: str = "", where: str = "",
                 expected: str = "", got: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.status, self.exit_code = status, exit_code
        self.what, self.where, self.expected, self.got, self.hint = what, where, expected, got, hint


class UsageError(HoneError, ValueError):
    """An argument is wrong: no such input, another shape or type, an option without sense."""


class InputError(HoneError, ValueError):
    """A file is malformed, contradicts itself or is not there."""


class UnsupportedError(HoneError, NotImplementedError):
    """Valid, but outside what hone does: an operator, opset, type or attribute."""


class MissingError(HoneError, OSError):
    """Something is not there: a library, a device, the command."""


class ResourceError(HoneError, RuntimeError):
    """Memory, time or a budget is spent, a file cannot be written, or a device reported a fault."""


class VerdictError(HoneError, RuntimeError):
    """A command that should have printed a document did not."""


# By hone_status.
_CLASSES = [HoneError, UsageError, InputError, UnsupportedError, MissingError, ResourceError, ResourceError,
            ResourceError, ResourceError, ResourceError, HoneError]
# By exit code of the command.
_EXITS = {2: UsageError, 3: InputError, 4: MissingError, 6: ResourceError}


def check(status: int, error: Error) -> None:
    """Raises what a function of the library returned, unless it went well."""
    if not status:
        return
    size = library.hone_error_format(c.byref(error), None, 0) + 1
    line = c.create_string_buffer(size)
    library.hone_error_format(c.byref(error), line, size)
    kind = _CLASSES[status] if status < len(_CLASSES) else HoneError
    raise kind(text(line.value), status=text(library.hone_status_name(status)),
               exit_code=library.hone_status_exit_code(status), what=text(error.what), where=text(error.where),
               expected=text(error.expected), got=text(error.got), hint=text(error.hint))


def refusal(where: str, what: str, *, expected: str = "", got: str = "", hint: str = "") -> UsageError:
    """A mistake that is found before the library is asked, in the library's words."""
    line = f"{where}: {what}" if where else what
    line += (f"; expected {expected}" if expected else "") + (f", got {got}" if got else "")
    return UsageError(line + (f" ({hint})" if hint else ""), status="usage", what=what, where=where, expected=expected,
                      got=got, hint=hint)


def of_exit(code: int, message: str) -> HoneError:
    """What the command said with its exit code."""
    said = message.strip().splitlines()[-1:] or [f"hone ended with exit code {code} and said nothing"]
    line = said[0].removeprefix("hone: error: ")
    return _EXITS.get(code, VerdictError)(line, exit_code=code, what=line)
