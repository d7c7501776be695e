#!/usr/bin/env python3
"""Reads a tape as format/SPEC.md describes it, and prints it as text.

An independent second reader: written from that page, with nothing of Heaptape's or Cap'n Proto's
code. `spec_reader.py TAPE` prints; `spec_reader.py TAPE EXPECTED` compares and exits with 1 and the
first differing line. It scans; the index is checked against what was found.
"""

import ctypes
import ctypes.util
import struct
import sys

MASK = (1 << 64) - 1
MAGIC = bytes.fromhex("89485441500d0a1a")


# ---- checksums and compression

CRC_TABLE = list(range(256))
for _ in range(8):
    CRC_TABLE = [crc >> 1 ^ (0x82F63B78 if crc & 1 else 0) for crc in CRC_TABLE]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


ZSTD = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
ZSTD.ZSTD_decompress.restype = ctypes.c_size_t
ZSTD.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]


def unzstd(data, raw_size):
    out = ctypes.create_string_buffer(raw_size or 1)
    size = ZSTD.ZSTD_decompress(out, raw_size, data, len(data))
    if size != raw_size:
        raise ValueError("column does not decompress")
    return out.raw[:raw_size]


# ---- Cap'n Proto messages

class Struct:
    def __init__(self, message, segment, data, data_words, pointers):
        self.message, self.segment, self.data = message, segment, data
        self.data_bytes, self.pointers = 8 * data_words, pointers

    def get(self, offset, code):
        size = struct.calcsize("<" + code)
        if offset + size > self.data_bytes:
            return 0
        return struct.unpack_from("<" + code, self.message.segments[self.segment], self.data + offset)[0]

    def bit(self, offset, bit):
        return self.get(offset, "B") >> bit & 1

    def pointer(self, index):
        if index >= self.pointers:
            return None
        return self.message.follow(self.segment, self.data + self.data_bytes + 8 * index)

    def struct(self, index):
        return self.pointer(index) or Struct(self.message, 0, 0, 0, 0)

    def list(self, index):
        return self.pointer(index) or []

    def text(self, index):
        return self.pointer(index) or b""


class Message:
    def __init__(self, payload):
        count = struct.unpack_from("<I", payload)[0] + 1
        sizes = struct.unpack_from("<%dI" % count, payload, 4)
        at = (4 + 4 * count + 7) // 8 * 8
        self.segments = []
        for size in sizes:
            self.segments.append(payload[at:at + 8 * size])
            at += 8 * size

    def root(self):
        return self.follow(0, 0) or Struct(self, 0, 0, 0, 0)

    def word(self, segment, at):
        return struct.unpack_from("<Q", self.segments[segment], at)[0]

    def follow(self, segment, at):
        word = self.word(segment, at)
        if word == 0:
            return None
        if word & 3 == 2:
            segment, pad = word >> 32, 8 * (word >> 3 & 0x1FFFFFFF)
            if word & 4 == 0:
                return self.follow(segment, pad)
            place = self.word(segment, pad)
            return self.object(place >> 32, 8 * (place >> 3 & 0x1FFFFFFF), self.word(segment, pad + 8))
        offset = word >> 2 & 0x3FFFFFFF
        if offset & 0x20000000:
            offset -= 0x40000000
        return self.object(segment, at + 8 + 8 * offset, word)

    def object(self, segment, at, word):
        if word & 3 == 0:
            return Struct(self, segment, at, word >> 32 & 0xFFFF, word >> 48)
        kind, count = word >> 32 & 7, word >> 35
        if kind == 2:
            return self.segments[segment][at:at + count]
        if kind == 6:
            return [self.follow(segment, at + 8 * i) or b"" for i in range(count)]
        if kind == 7:
            tag = self.word(segment, at)
            data, pointers = tag >> 32 & 0xFFFF, tag >> 48
            return [Struct(self, segment, at + 8 + 8 * i * (data + pointers), data, pointers)
                    for i in range(tag >> 2 & 0x3FFFFFFF)]
        raise ValueError("a list of kind %d" % kind)


# ---- columns

class Column:
    def __init__(self, data=b""):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value & MASK

    def done(self):
        return self.at == len(self.data)


def unzigzag(code):
    return (code >> 1) ^ (MASK if code & 1 else 0)


def column(entry):
    data = bytes(entry.text(0))
    coding, raw_size = entry.get(1, "B"), entry.get(4, "I")
    if coding == 1:
        return Column(unzstd(data, raw_size))
    if coding != 0 or len(data) != raw_size:
        raise ValueError("a column that cannot be read")
    return Column(data)


class Columns:
    """The columns of a block, with the dictionaries that live as long as it."""

    def __init__(self, entries):
        self.columns, self.history, self.turned, self.sites = {}, [], 0, []
        for entry in entries:
            number = entry.get(0, "B")
            if number >= 128:
                continue
            if number in self.columns or not 1 <= number <= 12:
                raise ValueError("column %d" % number)
            self.columns[number] = column(entry)

    def has(self, number):
        return number in self.columns

    def __getitem__(self, number):
        return self.columns.setdefault(number, Column())

    def alignment(self):
        code = self[3].byte()
        if code == 0:
            return 0
        return 1 << code - 1 if code <= 64 else self[3].varint()

    def address(self):
        code = self[4].varint()
        if code == 0:
            return 0
        if code == 1:
            self.turned = (self.turned + unzigzag(self[5].varint())) & MASK
            address = (self.turned << 3 | self.turned >> 61) & MASK
        else:
            address = self.history[-(code - 1)]
        self.history.append(address)
        return address

    def site(self):
        if not self.has(7):
            return 0
        code = self[7].varint()
        if code == 0:
            return 0
        if code == len(self.sites) + 1:
            before = self.sites[-1] if self.sites else 0
            self.sites.append((before + unzigzag(self[7].varint())) & MASK)
        return self.sites[code - 1]

    def check_end(self):
        if not all(c.done() for c in self.columns.values()):
            raise ValueError("bytes left over in a column")


ACQUIRES = set(range(1, 12))
RESIZES = {16, 17}
RELEASES = set(range(32, 40))
KNOWN = ACQUIRES | RESIZES | RELEASES | {48}


def has_size(kind):
    return kind in ACQUIRES | RESIZES | {34, 35, 38, 39, 48} or kind not in KNOWN


def has_alignment(kind):
    return kind in {3, 4, 5} | set(range(8, 12)) | set(range(35, 40)) or kind not in KNOWN


FAILED, NULL, UNKNOWN, IMPLIED, REPAIRED, IN_PLACE, FREEING, UNFINISHED, CUT = (1 << i for i in range(9))


# ---- the tape

class Tape:
    def __init__(self, data):
        self.data = data
        self.header = self.footer = None
        self.blocks = []  # (kind, length, events, low, high), for the index
        self.threads, self.modules = {}, {}
        self.markers, self.resident, self.gaps, self.watermarks = [], [], [], []
        self.streams = {}
        self.events = []
        self.next_object, self.next_index, self.live, self.stack, self.slots = 1, 0, {}, [], 0
        self.ended = False
        self.damage = {"bad": 0, "skipped": 0, "blocks": 0, "events": 0}
        self.scan()

    def scan(self):
        at, expected, damage_start, incomplete = 0, 0, None, False
        size = len(self.data)
        while at < size:
            taken, incomplete = self.take(at, expected)
            if taken:
                if damage_start is not None:
                    self.damage["bad"] += 1
                    self.damage["skipped"] += at - damage_start
                    damage_start = None
                self.damage["blocks"] += taken[1] - expected
                at, expected = taken[0], taken[1] + 1
                continue
            damage_start = at if damage_start is None else damage_start
            found = self.data.find(MAGIC, at + 1)
            at = found if found >= 0 else size
        if damage_start is not None:
            self.damage["bad"] += 0 if incomplete else 1
            self.damage["skipped"] += size - damage_start
        if self.header is None:
            raise ValueError("no tape")
        if self.footer is not None:
            found = len(self.events) + sum(len(s) for s in self.streams.values())
            self.damage["events"] = max(self.damage["events"], self.footer.get(16, "Q") - found)

    def take(self, at, expected):
        """((end, sequence) or None, whether the file ends within the block)."""
        head = self.data[at:at + 32]
        if len(head) < 32:
            return None, True
        kind, version, flags, length, sequence, payload_crc, header_crc = struct.unpack_from("<HBBIQII", head, 8)
        if head[:8] != MAGIC or crc32c(head[:28]) != header_crc:
            return None, False
        if version > 1 or (not 1 <= kind <= 11 and flags & 1):
            raise ValueError("newer")
        end = at + 32 + length
        if length % 8 or length > 32 << 20 or sequence < expected:
            return None, False
        if end > len(self.data):
            return None, True
        payload = self.data[at + 32:end]
        if crc32c(payload) != payload_crc:
            return None, False
        extent = self.block(kind, Message(payload).root() if 1 <= kind <= 11 else None)
        self.blocks.append((kind, length) + extent)
        return (end, sequence), False

    def block(self, kind, root):
        if kind == 1:
            self.header = self.header or root
        elif kind == 2:
            return self.recorded(root)
        elif kind == 3:
            return self.packed(root)
        elif kind == 4:
            for t in root.list(0):
                self.threads[t.get(0, "I")] = t
        elif kind == 5:
            for m in root.list(0):
                self.modules[m.get(0, "Q")] = m
        elif kind == 6:
            self.markers += root.list(0)
        elif kind == 7:
            self.resident += root.list(0)
        elif kind == 8:
            self.gaps.append(root)
        elif kind == 9:
            self.watermarks.append(root)
        elif kind == 10:
            self.check_index(root)
            self.footer = root
        elif kind == 11:
            self.ended = True
        return ()

    def check_index(self, footer):
        """An index that is there must list the blocks that were found, unless some are missing."""
        entries = footer.pointer(0)
        if entries is None or self.damage["bad"] or self.damage["blocks"]:
            return
        index, low_before, listed = column(entries), 0, []
        while not index.done():
            entry = (index.varint(), index.varint() * 8)
            if entry[0] in (2, 3):
                events = index.varint()
                low = (low_before + unzigzag(index.varint())) & MASK
                entry += (events, low, (low + index.varint()) & MASK)
                low_before = low
            listed.append(entry)
        if listed != self.blocks:
            raise ValueError("the index does not fit")

    def recorded(self, root):
        columns = Columns(root.list(1))
        total, lows, highs = 0, [], []
        for run in root.list(0):
            thread, count, first = run.get(0, "I"), run.get(4, "I"), run.get(8, "Q")
            stream = self.streams.setdefault(thread, [])
            number = stream[-1][0] + 1 if stream else 0
            if first < number:
                raise ValueError("events twice")
            self.damage["events"] += first - number
            stamp, begun = run.get(16, "Q"), 0
            lows.append(stamp)
            highs += [stamp, run.get(24, "Q")]
            for i in range(count):
                code = columns[1].byte()
                kind, phase = code & 63, code >> 6
                stamp = (stamp + columns[6].varint()) & MASK
                size = alignment = address = 0
                if has_size(kind):
                    size = columns[2].varint() ^ (begun if phase >= 2 else 0)
                    begun = size if phase == 1 else begun
                if has_alignment(kind):
                    alignment = columns.alignment()
                if kind != 48:
                    address = columns.address()
                stream.append((first + i, kind, phase, stamp, address, size, alignment, columns.site()))
            total += count
        columns.check_end()
        return (total, min(lows), max(highs))

    def packed(self, root):
        count, first, first_object = root.get(0, "I"), root.get(8, "Q"), root.get(16, "Q")
        self.damage["events"] += first - self.next_index
        if first != self.next_index or first_object != self.next_object:
            raise ValueError("lost blocks of packed tapes are beyond this reader")
        columns = Columns(root.list(0))
        keeps_addresses = self.header.bit(3, 1)
        time, thread, released_before = root.get(24, "Q"), 0, first_object
        for _ in range(count):
            code = columns[1].byte()
            kind = code & 63
            flags = columns[8].varint() if code & 64 else 0
            thread = columns[9].varint() if code & 128 else thread
            time = (time + unzigzag(columns[10].varint())) & MASK
            size = columns[2].varint() if has_size(kind) else 0
            alignment = columns.alignment() if has_alignment(kind) else 0
            born = released = released_size = address = released_address = 0
            slot = released_slot = -1
            if kind in RELEASES | RESIZES or flags & IMPLIED:
                code = columns[11].varint()
                if code:
                    released = self.next_object - (code >> 1) if code % 2 == 0 else (
                        released_before + unzigzag(code >> 1)) & MASK
                    released_before = released
                    released_slot, released_size, released_address = self.live.pop(released)
                elif keeps_addresses:
                    released_address = columns.address()
            if kind in ACQUIRES | RESIZES and not flags & (FAILED | FREEING | UNFINISHED | IMPLIED):
                born = self.next_object
                self.next_object += 1
                address = columns.address() if keeps_addresses else 0
                if released:
                    slot = released_slot
                elif self.stack:
                    slot = self.stack.pop()
                else:
                    slot = self.slots
                    self.slots += 1
                self.live[born] = (slot, size, address)
            elif released:
                self.stack.append(released_slot)
            if kind in RELEASES or flags & IMPLIED:
                address = released_address
            signed = time - (1 << 64) if time >> 63 else time
            self.events.append((self.next_index, signed * 1000, thread, kind, flags, size, alignment, born, slot,
                                released, released_slot, released_size, address, released_address,
                                columns.site()))
            self.next_index += 1
        columns.check_end()
        return (count, root.get(24, "Q"), root.get(32, "Q"))

    # ---- as text

    def text(self):
        h = self.header
        packed = h.get(0, "B")
        yield "form %d clock %d stacks %d from_start %d keeps_addresses %d" % (
            packed, h.get(1, "B"), h.get(2, "B"), h.bit(3, 0), h.bit(3, 1))
        yield "pid %d parent %d cpus %d page %d" % tuple(h.get(o, "I") for o in (4, 8, 12, 16))
        yield "id %d %d started %d start_tick %d" % tuple(h.get(o, "Q") for o in (24, 32, 40, 48))
        yield "ticks_per_second %.3f" % h.get(56, "d")
        for name, index in (("version", 0), ("program", 1), ("kernel", 3), ("cpu", 4), ("allocator", 5), ("source", 6)):
            yield "%s %s" % (name, quote(h.text(index)))
        for argument in h.list(2):
            yield "argument %s" % quote(argument)
        threads = {t: (i.get(4, "I"), i.get(8, "Q"), i.get(16, "Q"), i.text(0)) for t, i in self.threads.items()}
        for thread in self.streams:
            threads.setdefault(thread, (0, 0, 0, b""))
        for thread in sorted(threads):
            yield "thread %d tid %d start %d end %d name %s" % ((thread,) + threads[thread][:3] + (quote(threads[thread][3]),))
        for address in sorted(self.modules):
            m = self.modules[address]
            yield "module %d size %d bias %d path %s build %s" % (
                address, m.get(8, "Q"), m.get(16, "Q"), quote(m.text(0)), quote(m.text(1)))
        for s in self.resident:
            yield "resident %d %d %d" % (s.get(0, "q"), s.get(8, "Q"), s.get(16, "Q"))
        for g in self.gaps:
            yield "gap thread %d lost %d stamp %d" % (g.get(0, "I"), g.get(8, "Q"), g.get(16, "Q"))
        for m in self.markers:
            yield "marker %d %s" % (m.get(0, "q"), quote(m.text(0)))
        for thread in sorted(self.streams):
            for event in self.streams[thread]:
                yield "recorded %d kind %d phase %d stamp %d address %d size %d alignment %d site %d" % (
                    (thread,) + event[1:])
        for e in self.events:
            yield ("event %d time %d thread %d kind %d flags %d size %d alignment %d object %d slot %d"
                   " released %d slot %d size %d address %d %d site %d" % e)
        f = self.footer
        if f is not None:
            yield "footer reason %d value %d duration %d" % (f.get(0, "B"), f.get(4, "i"), f.get(8, "q"))
            yield "recorder %d %d %d %d %d %d %d" % tuple(f.get(o, "Q") for o in range(24, 80, 8))
        if packed and f is not None and f.bit(1, 0):
            yield "merge %d %d %d %d %d %d %d %d %d" % tuple(f.struct(1).get(8 * i, "Q") for i in range(9))
        d = self.damage
        source = f.struct(2) if f is not None else None
        total = [source.get(8 * i, "Q") if source else 0 for i in range(1, 5)]
        truncated = f is None or not self.ended or source.bit(0, 0)
        yield "damage truncated %d bad %d skipped %d blocks %d events %d" % (
            truncated, d["bad"] + total[0], d["skipped"] + total[1], d["blocks"] + total[2], d["events"] + total[3])


def quote(text):
    return "".join(chr(b) if 33 <= b < 127 and b != 37 else "%%%02x" % b for b in bytes(text))


def main():
    with open(sys.argv[1], "rb") as file:
        lines = list(Tape(file.read()).text())
    if len(sys.argv) == 2:
        print("\n".join(lines))
        return 0
    with open(sys.argv[2], encoding="ascii") as file:
        expected = file.read().splitlines()
    for number, (ours, theirs) in enumerate(zip(lines, expected), 1):
        if ours != theirs:
            print("line %d\n  from the tape: %s\n  expected:      %s" % (number, ours, theirs))
            return 1
    if len(lines) != len(expected):
        print("%d lines instead of %d" % (len(lines), len(expected)))
        return 1
    print("%d lines agree" % len(lines))
    return 0


sys.exit(main())
