"""`python -m torch_straggler.bench`: the same as `straggler bench`."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
