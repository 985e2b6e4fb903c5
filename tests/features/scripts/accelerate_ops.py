"""accelerate's own `test_ops.py`, on CPU: the state that it makes has to be told so, once in a process."""

from accelerate import PartialState
from accelerate.test_utils.scripts.test_ops import main

if __name__ == "__main__":
    PartialState(cpu=True)
    main()
