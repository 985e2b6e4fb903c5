#!/usr/bin/env bash
# Runs every feature and writes FEATURES.md: tests/features/others.sh [pytest's options]
#
# Some need packages that `make test` does without, Lightning and transformers. They go to build/others, an environment that
# sees .venv's packages, so that torch is not installed again.
set -euo pipefail
# shellcheck source=tooling/lib.sh
source "$(dirname "$0")/../../tooling/lib.sh"

others=build/others

install_others() {
  local site
  if [[ ! -x $others/bin/python ]]; then .venv/bin/python -m venv "$others"; fi
  site=$(echo "$PWD/$others"/lib/python3.*/site-packages)
  echo "$PWD"/.venv/lib/python3.*/site-packages >"$site/of_the_project.pth"
  "$others/bin/python" -m pip install --quiet --no-warn-conflicts lightning transformers
  du -sm "$site" | awk '{ printf "    %d MB\n", $1 }'
}

stage "set-up" make --no-print-directory setup
stage "installing Lightning and transformers" install_others
FEATURES=every PYTHONPATH=$(echo "$PWD/$others"/lib/python3.*/site-packages) \
  stage "every feature" .venv/bin/python -m pytest tests/features -o timeout=600 "$@"
