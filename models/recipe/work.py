"""Where the recipe's files lie: intermediate ones in $TROUPE_RECIPE_WORK (default: build/tiny-model), the shipped model in
models/tiny."""

import os

HERE = os.path.dirname(os.path.abspath(__file__))
SHIPPED = os.path.join(os.path.dirname(HERE), "tiny")
WORK = os.environ.get("TROUPE_RECIPE_WORK") or os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "tiny-model")


def work_file(*names):
    path = os.path.join(WORK, *names)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path
