#!/bin/sh
# usage: texts_of_turing.sh BUILD FOLDER   device texts of a network and of codes, recorded on a GPU of architecture 75, through the real NVRTC
build=$1 folder=$2
export HONE_FAKE_ARCH=75 HONE_FAKE_RECORD="$folder" HONE_TACTICS='-cudnn*,-cublaslt*'
rm -rf "$folder" && mkdir -p "$folder"
"$build/check_texts" "$folder" sm_75 >"$folder.log" 2>&1
[ $? != 77 ] || { grep SKIP "$folder.log"; exit 77; }
"$build/hone" run zoo:mobilenetv2 --device cuda --precision fp16 --no-cache >"$folder.log" 2>&1
"$build/hone" run zoo:mobilenetv2 --device cuda --precision bf16 --no-cache >>"$folder.log" 2>&1
"$build/check_codes" --tactic 'codes*' >>"$folder.log" 2>&1
"$build/check_codes" --tactic 'int8_conv_mma_64x64' >>"$folder.log" 2>&1
"$build/check_tactics" tests/tactics/cases/product.txt --device cuda --filter MatMulNBits --once --unjudged --tactic 'nbits_*' >>"$folder.log" 2>&1
grep -rq nbits_mma "$folder" || { echo "no products by codes of few bits were recorded"; exit 1; }
grep -rq 'HN_T f16' "$folder" && grep -rq 'HN_T u8' "$folder" || { echo "no products of f16 and codes were recorded"; exit 1; }
"$build/check_texts" "$folder" sm_75 --most 2 --jobs 1
