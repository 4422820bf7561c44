#!/bin/sh
# Networks in every form of quantisation: on integers, with ONNX Runtime's answers. Usage: forms.sh HONE [OPTIONS]
set -eu
hone=$1
shift
. tests/quantize/python.sh
[ $# -gt 0 ] || set -- mobilenetv2 resnet50
run "$python" tests/quantize/forms.py "$hone" "$dir" "$@"
