#!/bin/sh
# Prints which Python runs which stack, for the Makefile. PYTHON is the default Python (python3).
#   stack.sh list           the stacks of `make test`
#   stack.sh list all       the stacks of `make test-all`
#   stack.sh python STACK   the interpreter that creates the environment of STACK
# Stacks: "latest" is the newest TensorFlow with Keras 3, "ranking" is the newest TensorFlow with
# Keras 2 and TF-Ranking, and "ranking-2.15" is TensorFlow 2.15 with TF-Ranking.
set -eu

PYTHON=${PYTHON:-python3}

fail() {
  echo "error: $*" >&2
  exit 1
}

# The minor version of interpreter $1, or nothing. The interpreter is run, not only looked up on
# the PATH, since a pyenv shim exists even if its version is not installed.
minor() {
  "$1" -c 'import sys; print(sys.version_info[1] if sys.version_info[0] == 3 else 0)' \
    2>/dev/null || true
}

own_minor=$(minor "$PYTHON")
[ -n "$own_minor" ] || fail "cannot run '$PYTHON'; set a Python with make PYTHON=..."
[ "$own_minor" -ge 10 ] || fail "'$PYTHON' is older than Python 3.10, the oldest supported version"

# TensorFlow 2.15 supports Python up to 3.11 only.
older_python() {
  for candidate in "$PYTHON" python3.11 python3.10; do
    case $(minor "$candidate") in
      10 | 11) echo "$candidate" && return ;;
    esac
  done
}

case "${1:-} ${2:-}" in
  "list ") echo latest ranking ;;
  "list all")
    if [ -n "$(older_python)" ]; then
      echo latest ranking ranking-2.15
    else
      echo "NOTE: '$PYTHON' is Python 3.$own_minor, and python3.11 or python3.10 was not found." \
        "TensorFlow 2.15 requires one of them, so the stack 'ranking-2.15' does not run." >&2
      echo latest ranking
    fi
    ;;
  "python latest" | "python ranking" | "python ranking-2.15")
    if [ "$2" = ranking-2.15 ]; then python=$(older_python); else python=$PYTHON; fi
    [ -n "$python" ] || fail "the stack 'ranking-2.15' requires Python 3.10 or 3.11"
    "$python" -c 'import ensurepip, venv' 2>/dev/null || fail "'$python' cannot create virtual" \
      "environments; on Debian and Ubuntu: apt install python3-venv (or python3.X-venv)"
    echo "$python"
    ;;
  *) fail "usage: stack.sh list [all] | stack.sh python latest|ranking|ranking-2.15" ;;
esac
