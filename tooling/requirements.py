"""Prints requirements of pyproject.toml, one a line, so that the set-up scripts repeat none of them.

python tooling/requirements.py build    what the build needs
python tooling/requirements.py torch    the supported torch
python tooling/requirements.py NAME     an optional group, as lint
"""

import sys
import tomllib
from pathlib import Path


def requirements(group: str) -> list[str]:
    config = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())
    if group == "build":
        return list(config["build-system"]["requires"])
    if group == "torch":
        return [line for line in config["project"]["dependencies"] if line.startswith("torch")]
    return list(config["project"]["optional-dependencies"][group])


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1])))
