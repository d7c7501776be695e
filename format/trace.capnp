@0xb3a5f1c2d47e9086;
# The payloads of a tape's blocks, one message each. SPEC.md says how they are framed, what the
# columns hold, and what a reader checks. Fields are only ever appended.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("heaptape::format::wire");

struct Header {
  form @0 :UInt8;             # 0 recorded, 1 packed
  clock @1 :UInt8;            # 0 time stamp counter, 1 sequence number, 2 none
  stacks @2 :UInt8;           # 0 none, 1 caller
  fromStart @3 :Bool;
  keepsAddresses @4 :Bool;
  pid @5 :UInt32;
  parentPid @6 :UInt32;
  cpus @7 :UInt32;
  pageSizeBytes @8 :UInt32;
  tapeIdLow @9 :UInt64;
  tapeIdHigh @10 :UInt64;
  startedUnixNs @11 :UInt64;
  startTick @12 :UInt64;
  ticksPerSecond @13 :Float64;
  heaptapeVersion @14 :Data;  # texts are bytes: paths and arguments need not be UTF-8
  program @15 :Data;
  arguments @16 :List(Data);
  hostKernel @17 :Data;
  cpuModel @18 :Data;
  allocator @19 :Data;
  source @20 :Data;
}

struct Column {
  id @0 :UInt8;
  coding @1 :UInt8;           # 0 as it is, 1 zstd
  rawSize @2 :UInt32;         # bytes before compression
  data @3 :Data;
}

struct Run {                  # consecutive events of one thread
  thread @0 :UInt32;
  count @1 :UInt32;
  first @2 :UInt64;           # number of the first one among the thread's events on this tape
  firstStamp @3 :UInt64;
  lastStamp @4 :UInt64;
}

struct RecordedEvents {
  runs @0 :List(Run);
  columns @1 :List(Column);
}

struct PackedEvents {
  count @0 :UInt32;
  first @1 :UInt64;           # index of the first event in the merged order
  firstObject @2 :UInt64;     # number that the next object born gets
  firstTimeUs @3 :Int64;
  lastTimeUs @4 :Int64;
  columns @5 :List(Column);
}

struct Threads {
  threads @0 :List(Thread);
  struct Thread {
    thread @0 :UInt32;
    tid @1 :UInt32;
    startTick @2 :UInt64;
    endTick @3 :UInt64;
    name @4 :Data;
  }
}

struct Modules {
  modules @0 :List(Module);
  struct Module {
    loadAddress @0 :UInt64;
    sizeBytes @1 :UInt64;
    loadBias @2 :UInt64;
    path @3 :Data;
    buildId @4 :Data;         # hexadecimal text
  }
}

struct Markers {
  markers @0 :List(Marker);
  struct Marker {
    timeNs @0 :Int64;
    name @1 :Data;
  }
}

struct Resident {
  samples @0 :List(Sample);
  struct Sample {
    timeNs @0 :Int64;
    residentBytes @1 :UInt64;
    anonymousBytes @2 :UInt64;
  }
}

struct Gap {
  thread @0 :UInt32;
  lostEvents @1 :UInt64;
  stamp @2 :UInt64;
}

struct Watermark {
  tick @0 :UInt64;
  timeNs @1 :Int64;
}

struct Footer {
  reason @0 :UInt8;           # 0 unknown, 1 exited, 2 killed, 3 replaced, 4 stopped
  hasMerge @1 :Bool;
  value @2 :Int32;
  durationNs @3 :Int64;
  events @4 :UInt64;
  stalls @5 :UInt64;
  stalledNs @6 :UInt64;
  droppedEvents @7 :UInt64;
  ownAllocations @8 :UInt64;
  nestedCalls @9 :UInt64;
  signalLosses @10 :UInt64;
  lostThreads @11 :UInt64;
  blocks @12 :UInt64;         # before this one
  index @13 :Column;
  merge @14 :Merge;
  sourceDamage @15 :Damage;   # of the tape that this one was packed from
}

struct Damage {
  truncated @0 :Bool;
  badBlocks @1 :UInt64;
  skippedBytes @2 :UInt64;
  missingBlocks @3 :UInt64;
  missingEvents @4 :UInt64;
}

struct Merge {
  events @0 :UInt64;
  contradictions @1 :UInt64;
  repairs @2 :UInt64;
  unknownReleases @3 :UInt64;
  openReallocs @4 :UInt64;
  gaps @5 :UInt64;
  lostEvents @6 :UInt64;
  impliedByDamage @7 :UInt64;
  lateEvents @8 :UInt64;
}

struct End {
  footerOffset @0 :UInt64;
}
