"""`python -m pages.web`: the workbench's server process; `python -m memory_core serve` becomes it."""

import argparse
import sys

from pages.web.server import run

options = argparse.ArgumentParser(prog="python -m pages.web")
options.add_argument("--address", default="127.0.0.1")
options.add_argument("--port", type=int, default=8501)
chosen = options.parse_args()
sys.exit(run(chosen.address, chosen.port))
