#!/bin/sh
# make bench-peers: hone against ONNX Runtime and OpenVINO. Makes the Python environment of the peer when it is missing (outside of the
# repository: $HONE_PEERS_VENV, else ~/.cache/hone/peers-venv) and runs main.py in it. Exit codes are those of docs/reference/exit-codes.md.
set -u
here=$(dirname "$0")
venv=${HONE_PEERS_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/hone/peers-venv}
if [ ! -x "$venv/bin/python" ]; then
  python3 -c 'import venv, ensurepip' 2>/dev/null || {
    echo "bench-peers: python3 with venv and pip is missing (Debian: apt install python3-venv); nothing measured" >&2
    exit 4
  }
  python3 -m venv "$venv" || exit 4
fi
"$venv/bin/python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null || {
  echo "bench-peers: installing onnxruntime, onnx and numpy into $venv" >&2
  "$venv/bin/python" -m pip install --quiet onnxruntime==1.30.0 onnx numpy || {
    echo "bench-peers: pip could not install onnxruntime; nothing measured" >&2
    exit 4
  }
}
"$venv/bin/python" -c 'import openvino' 2>/dev/null || {
  echo "bench-peers: installing openvino into $venv" >&2
  "$venv/bin/python" -m pip install --quiet "openvino==2026.4.*" ||
    echo "bench-peers: pip could not install openvino; ONNX Runtime alone is measured" >&2
}
exec "$venv/bin/python" "$here/main.py" "$@"
