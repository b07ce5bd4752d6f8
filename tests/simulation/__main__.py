"""python -m tests.simulation --from SEED --seeds N: the scheduler in made-up worlds, and the smallest one in which it fails."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from simulation.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
