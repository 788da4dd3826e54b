#!/usr/bin/env python3
"""Runs one end-to-end test with what it needs: run.py --work BUILD_FOLDER [--openai] TEST.py [arguments of the test].

Tests that need the official OpenAI client get a virtual environment in the build folder, made once; without a way to install
the package they are skipped with the reason.
"""
import argparse
import os
import subprocess
import sys

SKIP = 77
here = os.path.dirname(os.path.abspath(__file__))


def can_import(python, modules):
    return subprocess.run([python, "-c", "import " + ", ".join(modules)], capture_output=True).returncode == 0


def python_with_websockets():
    """This Python, or Debian's where this one lacks the package."""
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and can_import(python, ["websockets"]):
            return python
    print("skip  no Python with the websockets package (Debian: python3-websockets)")
    sys.exit(SKIP)


def python_with_openai(work):
    given = os.environ.get("TROUPE_E2E_PYTHON")
    if given:
        return given
    environment = os.path.join(work, "e2e-venv")
    python = os.path.join(environment, "bin", "python")
    if os.path.exists(python) and can_import(python, ["openai", "websockets"]):
        return python
    made = subprocess.run([sys.executable, "-m", "venv", environment], capture_output=True, text=True)
    if made.returncode != 0:
        print(f"skip  no virtual environment: {made.stderr.strip()[-200:] or made.stdout.strip()[-200:]}")
        sys.exit(SKIP)
    installed = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "openai[realtime]"],
                               capture_output=True, text=True, timeout=400)
    if installed.returncode != 0 or not can_import(python, ["openai", "websockets"]):
        print(f"skip  the openai package can't be installed: {installed.stderr.strip()[-300:]}")
        sys.exit(SKIP)
    return python


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--work", required=True)
parser.add_argument("--openai", action="store_true")
parser.add_argument("test")
parser.add_argument("rest", nargs=argparse.REMAINDER)
arguments = parser.parse_args()
python = python_with_openai(arguments.work) if arguments.openai else python_with_websockets()
sys.exit(subprocess.run([python, os.path.join(here, arguments.test), *arguments.rest]).returncode)
