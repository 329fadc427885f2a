"""`python -m tfr_smooth`, the same as the command `tfr-smooth`."""

import sys

from tfr_smooth.command_line import main

if __name__ == "__main__":
    sys.exit(main())
