"""hone makes neural-network inference fast and explains how.

    import hone
    session = hone.Session("model.onnx")
    results = session.run({"x": array})     # {name: numpy array}
    facts = hone.profile("model.onnx")      # what `hone profile --json` prints, as a dict
"""

from ._library import library, text
from .commands import command, diagnose, optimize, profile, verify
from .errors import (HoneError, InputError, MissingError, ResourceError, UnsupportedError, UsageError, VerdictError)
from .session import Port, Session

__version__: str = text(library.hone_version())
__all__ = ["HoneError", "InputError", "MissingError", "Port", "ResourceError", "Session", "UnsupportedError",
           "UsageError", "VerdictError", "command", "diagnose", "optimize", "profile", "verify"]
