#!/bin/sh
# usage: tests/cuda/emulated.sh COMMAND...   runs it on the emulated GPU of the build folder (HONE_BUILD, build)
build=$(cd "${HONE_BUILD:-$(dirname "$0")/../../build}" && pwd) || exit 2
export HONE_LIBCUDA="$build/tests/libfakecuda.so" HONE_LIBNVRTC="$build/tests/libfakenvrtc.so"
export HONE_LIBCUDNN="$build/tests/libfakecudnn.so" HONE_LIBCUBLASLT="$build/tests/libfakecublaslt.so"
export HONE_LIBCUPTI=none HONE_LIBNVML=none # they need a GPU that is one
export HONE_KERNEL_CACHE=off HONE_TUNE_CACHE=off
exec "$@"
