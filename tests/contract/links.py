#!/usr/bin/env python3
"""Every relative link in the project's Markdown pages must point at a file or folder that exists."""
import pathlib
import re
import subprocess
import sys

top = pathlib.Path(sys.argv[1])
pages = subprocess.run(["git", "-C", top, "ls-files", "*.md"], capture_output=True, text=True, check=True).stdout.split()
if not pages:
    sys.exit("links: no Markdown page found: not a git checkout?")
broken = []
links = 0
for page in pages:
    text = re.sub(r"```.*?```", "", (top / page).read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            continue
        links += 1
        if not ((top / page).parent / target.split("#")[0]).exists():
            broken.append(f"{page}: {target}")
print(f"{links} links in {len(pages)} pages")
if broken:
    sys.exit("broken links:\n" + "\n".join(broken))
