#!/bin/sh
# usage: record_texts.sh BUILD FOLDER [--all], with HONE_FAKE_RECORD=FOLDER   what kernels compute there is nothing, so what they are
# checked against does not matter: all that counts is which texts tactics ask for. --all: in all variants of the cases.
build=$1 folder=$2
thin=--thin
[ "$HONE_FAKE_ARCH" = 90 ] || thin=--once # what is not Hopper's has been recorded there in more variants
[ "${3:-}" = --all ] && thin=
export HONE_TACTICS=-cudnn*,-cublaslt* # they have no texts
rm -rf "$folder" && mkdir -p "$folder"
# Where there is no NVRTC, nobody would compile them.
"$build/check_texts" "$folder" "sm_$HONE_FAKE_ARCH" >"$folder.log" 2>&1
[ $? != 77 ] || { grep SKIP "$folder.log"; exit 77; }
# shellcheck disable=SC2086 # no word at all with --all
"$build/check_tactics" tests/tactics/cases tests/cuda/cases.txt --device cuda $thin --unjudged --tactic '-cu*' >"$folder.log" 2>&1
"$build/check_codes" >>"$folder.log" 2>&1
[ ! -x "$build/check_fp8" ] || "$build/check_fp8" >>"$folder.log" 2>&1
for network in resnet50 mobilenetv2; do
  "$build/hone" run zoo:$network --device cuda --precision fp16 >>"$folder.log" 2>&1
done
for precision in f32 tf32 fp16 bf16; do
  "$build/check_networks" mobilenetv2 0.35 48 $precision >>"$folder.log" 2>&1
  "$build/check_networks" yolov3 0.125 64 $precision >>"$folder.log" 2>&1
  "$build/check_networks" bert_base 0.17 12 $precision >>"$folder.log" 2>&1
done
[ "$(ls "$folder" | wc -l)" -gt 200 ]
