#!/bin/sh
# usage: record_texts.sh BUILD FOLDER, with HONE_FAKE_RECORD=FOLDER   what kernels compute there is nothing, so what they are
# checked against does not matter: all that counts is which texts tactics ask for.
build=$1 folder=$2
export HONE_TACTICS=-cudnn*,-cublaslt* # they have no texts
rm -rf "$folder" && mkdir -p "$folder"
"$build/check_tactics" tests/tactics/cases.txt --device cuda --tactic -cu* >"$folder.log" 2>&1
"$build/check_tactics" tests/cuda/cases.txt --device cuda >>"$folder.log" 2>&1
for network in resnet50 mobilenetv2; do
  "$build/hone" run zoo:$network --device cuda --precision fp16 >>"$folder.log" 2>&1
done
for precision in f32 tf32 fp16 bf16; do
  "$build/check_networks" mobilenetv2 0.35 48 $precision >>"$folder.log" 2>&1
  "$build/check_networks" yolov3 0.125 64 $precision >>"$folder.log" 2>&1
  "$build/check_networks" bert_base 0.17 12 $precision >>"$folder.log" 2>&1
done
[ "$(ls "$folder" | wc -l)" -gt 20 ]
