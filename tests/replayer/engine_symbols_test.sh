#!/usr/bin/env bash
# The replay loop's object may refer to nothing but what engine_allowed_symbols.txt lists, and the engine
# needs the C library alone. Usage: engine_symbols_test.sh LOOP_OBJECT ENGINE ALLOWED
set -euo pipefail
loop_object=$1 engine=$2 allowed=$3

undefined=$(nm --undefined-only --demangle "$loop_object" | sed 's/^ *U //' | sort -u)
[ -n "$undefined" ] || { echo "no undefined symbol at all in $loop_object: is that the loop?"; exit 1; }
unlisted=$(comm -23 <(printf '%s\n' "$undefined") <(grep -v '^#' "$allowed" | sed 's/  *#.*//' | sort -u))
[ -z "$unlisted" ] || { echo "the replay loop refers to what is not in $allowed:"; echo "$unlisted"; exit 1; }

needed=$(readelf --dynamic "$engine" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[ "$needed" = libc.so.6 ] || { echo "the engine needs more than the C library:"; echo "$needed"; exit 1; }
# It must not allocate by name: the candidate's malloc is reached through pointers only.
if nm --undefined-only --dynamic "$engine" | grep -wE 'malloc|calloc|realloc|free|_Zn[wa][jm]|_ZdlPv'; then
  echo "the engine calls an allocator by name"
  exit 1
fi
