#!/usr/bin/env python3
"""The rules of the preload library that can be read off its binary.

usage: preload_symbols.py LIBRARY ALLOWED_SYMBOLS VERSION_SCRIPT OBJECT...
"""
import re
import subprocess
import sys

library, allowed_file, script, *objects = sys.argv[1:]
problems = []


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


allowed = {}
for line in open(allowed_file):
    if line.strip() and not line.startswith("#"):
        symbol, _, reason = line.strip().partition(" ")
        allowed[symbol] = reason.strip()
        if not allowed[symbol]:
            problems.append(f"{allowed_file}: {symbol} has no reason")

undefined, defined = set(), set()
for line in run("nm", *objects).splitlines():
    fields = line.split()
    if len(fields) >= 2 and fields[-2] in "UwW" and len(fields) == 2:
        undefined.add(fields[-1])
    elif len(fields) == 3:
        defined.add(fields[-1])
if not undefined or not defined:
    problems.append("nm saw no symbols: the test looks at the wrong files")
for symbol in sorted(undefined - defined - set(allowed)):
    problems.append(f"uses {symbol}, which {allowed_file} does not allow")

dynamic = run("readelf", "-dW", library)
needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
if needed != ["libc.so.6"]:
    problems.append(f"needs {needed}, not libc.so.6 alone")
for flag in ("NOW", "NODELETE"):
    if flag not in dynamic:
        problems.append(f"is not linked with -z {flag.lower()}")
tls = re.search(r"^\s*TLS\s+\S+\s+\S+\s+\S+\s+\S+\s+(0x[0-9a-f]+)", run("readelf", "-lW", library), re.M)
if tls is None or int(tls[1], 16) > 16:
    problems.append(f"thread-local storage is {tls and tls[1]}, more than 16 bytes or not found")

wanted = set(re.findall(r"([A-Za-z_]\w*);", open(script).read().split("local:")[0]))
exported = {line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()}
if exported != wanted:
    problems.append(f"exports differ from {script}: {sorted(exported ^ wanted)}")

print(f"{len(undefined - defined)} symbols from outside, {len(exported)} exported, needs {needed}")
if problems:
    sys.exit("preload library:\n  " + "\n  ".join(problems))
