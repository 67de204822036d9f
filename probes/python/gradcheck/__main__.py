# SPDX-License-Identifier: Apache-2.0
"""`gradcheck` of the wheel: the program itself lies beside this file and takes over."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Becomes the program; returns only where it cannot be started."""
    program = Path(__file__).resolve().parent / "bin" / "gradcheck"
    try:
        os.execv(program, [str(program), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"gradcheck: cannot start {program}: {error.strerror}")


if __name__ == "__main__":
    main()
