"""`python -m asched` is the command `asched`."""

import sys

from asched.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
