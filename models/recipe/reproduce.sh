#!/bin/bash
# Rebuilds the bundled model from nothing into the work folder: reproduce.sh [MILLIONS [MORE]] of tokens. The shipped model saw 20
# million of gen.py's dialogues, then 3.4 million of chat.py's conversations (MORE). 20 million take about 30 minutes on 2 Zen 5 cores; without AVX-512 products run in float32, several times slower. Not reproducible bit for bit.
# Needs gcc and Debian's python3-torch, python3-numpy, python3-regex; and, without AVX-512, libopenblas0-pthread, as the reference
# BLAS is many times slower. The shipped files in models/tiny are not touched.
set -e
cd "$(dirname "$0")"
python=${PYTHON:-/usr/bin/python3}
export TROUPE_RECIPE_WORK=${TROUPE_RECIPE_WORK:-$(cd ../.. && pwd)/build/tiny-model}
mkdir -p "$TROUPE_RECIPE_WORK"
gcc -O3 -march=native -ffast-math -fopenmp -shared -fPIC kernels.c gemm.c -o "$TROUPE_RECIPE_WORK/kernels.so" -lm
$python tok.py                        # merges.json
$python data.py 0 1 2                 # stage0.npz to stage2.npz
$python train.py "${1:-20}"           # checkpoint.pt, train.log
if [ -n "$2" ]; then
  cp "$TROUPE_RECIPE_WORK/checkpoint.pt" "$TROUPE_RECIPE_WORK/first.pt"
  $python data.py 3 4                 # stage3.npz, stage4.npz
  $python train.py "$2" "$TROUPE_RECIPE_WORK/checkpoint.pt" "$TROUPE_RECIPE_WORK/first.pt"
fi
$python eval.py                       # eval.json
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $python export.py  # model/
$python sample.py | tee "$TROUPE_RECIPE_WORK/samples.txt"
echo "the model is in $TROUPE_RECIPE_WORK/model"
