"""What the tests share: models from hone's text form, and the build folder."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = os.environ.get("HONE_BUILD", str(Path(__file__).parents[2] / "build"))
os.environ.setdefault("HONE_LIBRARY", BUILD + "/libhone.so")
os.environ.setdefault("HONE_COMMAND", BUILD + "/hone")


class ModelTest(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def model(self, text: str, name: str = "m.onnx") -> str:
        path = os.path.join(self.folder, name)
        subprocess.run([BUILD + "/text_model", text, path], check=True)
        return path
