#!/bin/sh
# Random quantised models that ONNX Runtime's tools write: hone's answers are ONNX Runtime's. Usage: random.sh HONE
set -eu
hone=$1
. tests/quantize/python.sh
run "$python" tests/quantize/random_models.py "$hone" "$dir"
