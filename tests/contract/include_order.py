#!/usr/bin/env python3
"""Nothing includes upwards: format, recorder/ring < recorder, replayer < analyzers < cli.

usage: include_order.py SOURCE_DIR
"""
import pathlib
import re
import sys

top = pathlib.Path(sys.argv[1])
# Folder -> which folders of the project its files may include. The longest matching folder counts.
may_include = {
    "format": ["format"],
    "recorder/ring": ["recorder/ring"],
    "recorder/preload": ["recorder/preload", "recorder/ring"],
    "recorder/collector": ["recorder/collector", "recorder/ring", "format"],
    "replayer/heaps": ["replayer/heaps"],
    "replayer/plan": ["replayer/plan", "format"],
    "replayer/engine": ["replayer/engine", "replayer/heaps", "replayer/plan/plan.h"],
    "replayer/measure": ["replayer", "format"],
    "analyzers": ["analyzers", "replayer", "recorder/collector", "format"],
    "cli": ["cli", "analyzers", "replayer", "recorder", "format"],
}
libc_only = ["recorder/ring", "recorder/preload", "replayer/engine"]
allowed_cxx = {"atomic", "cstddef", "cstdint", "type_traits", "utility", "limits", "new", "array", "bit", "span",
               "cstring", "climits", "initializer_list", "algorithm"}

problems, files, includes = [], 0, 0
for path in sorted(p for p in top.rglob("*") if p.suffix in {".h", ".cpp", ".c"}):
    name = path.relative_to(top).as_posix()
    folder = max((f for f in may_include if name.startswith(f + "/")), key=len, default=None)
    if folder is None:
        if re.match(r"(format|recorder|replayer|analyzers|cli)/", name):
            problems.append(f"{name}: in a folder that has no rule here")
        continue
    files += 1
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if own := re.match(r'\s*#\s*include\s+"([^"]+)"', line):
            includes += 1
            target = own[1]
            if target.endswith(".capnp.h"):
                continue
            if not any(target == f or target.startswith(f + "/") for f in may_include[folder]):
                problems.append(f"{name}:{number}: includes {target}")
        elif system := re.match(r"\s*#\s*include\s+<([^>.]+)>", line):
            if folder in libc_only and system[1] not in allowed_cxx:
                problems.append(f"{name}:{number}: includes <{system[1]}>, which is more than headers")
print(f"{includes} includes of {files} files")
if files == 0:
    sys.exit("include_order: no files found")
if problems:
    sys.exit("includes that break the order:\n  " + "\n  ".join(problems))
