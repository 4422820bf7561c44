"""The structures of python/hone are those of the headers."""

import ctypes
import subprocess
import unittest

from common import BUILD

from hone import _library


class Layouts(unittest.TestCase):
    def test_as_the_compiler_says(self) -> None:
        said = subprocess.run([BUILD + "/python_layouts"], check=True, capture_output=True, text=True).stdout
        ours = ""
        for name, structure in _library.STRUCTURES.items():
            ours += f"{name} size {ctypes.sizeof(structure)}\n"
            for field, _ in structure._fields_:
                at = getattr(structure, field)
                ours += f"{name} {field} {at.offset} {at.size}\n"
        self.assertEqual(ours.splitlines(), said.splitlines())


if __name__ == "__main__":
    unittest.main()
